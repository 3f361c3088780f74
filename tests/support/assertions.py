"""Which functions of the tests can fail: they assert, or call a function of the tests that does."""

import ast
from collections.abc import Iterable
from pathlib import Path

from tests.support.source import Function, statements_of

ASSERTING = ("raises", "fail", "warns")
"""Functions of pytest that fail a test themselves."""


def without_assertion(modules: Iterable[Path], support: Iterable[Path]) -> list[str]:
    """`file::test` of each test that reaches no assertion, also not in functions of `support`.

    Functions are identified by their names: a test may pass because of another function of the
    same name, and is never reported wrongly.
    """
    of_support = _functions(support)
    return [
        f"{path}::{name}"
        for path in modules
        for known in [of_support | _functions([path])]
        for name, function in known.items()
        if name.startswith("test_") and not _asserts(function, known, set())
    ]


def _functions(paths: Iterable[Path]) -> dict[str, Function]:
    return {
        node.name: node
        for path in paths
        for node in statements_of(path.read_text(encoding="utf-8"))
        if isinstance(node, Function)
    }


def _asserts(function: Function, known: dict[str, Function], seen: set[str]) -> bool:
    seen.add(function.name)
    names: set[str] = set()
    for node in ast.walk(function):
        if isinstance(node, ast.Assert):
            return True
        if isinstance(node, ast.Name | ast.Attribute):
            name = node.id if isinstance(node, ast.Name) else node.attr
            if name in ASSERTING or name.startswith("assert_"):
                return True
            names.add(name)
    return any(_asserts(known[name], known, seen) for name in sorted(names & known.keys() - seen))
