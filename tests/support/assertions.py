"""Functions of the tests that can fail: they assert, or call a function of the tests that does."""

from collections.abc import Iterable
from pathlib import Path

from tests.support.source import Function, parsed

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
        function.name: function
        for path in paths
        for function in parsed(path.read_text(encoding="utf-8")).functions
    }


def _asserts(function: Function, known: dict[str, Function], seen: set[str]) -> bool:
    seen.add(function.name)
    if function.asserts or any(_is_asserting(name) for name in function.names):
        return True
    called = sorted(function.names & known.keys() - seen)
    return any(_asserts(known[name], known, seen) for name in called)


def _is_asserting(name: str) -> bool:
    return name in ASSERTING or name.startswith("assert_")
