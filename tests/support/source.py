"""Measures of Python source: sizes, comments, names of classes."""

import ast
import io
import shutil
import subprocess
import tokenize
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

Function = ast.FunctionDef | ast.AsyncFunctionDef
_BLOCKS = ("body", "handlers", "orelse", "finalbody", "cases")
"""The fields of a statement in which there are others."""


def modules_of(root: Path, packages: Iterable[str]) -> list[Path]:
    """The Python files of `packages` below `root`; packages that do not exist have none."""
    return sorted(path for package in packages for path in (root / package).rglob("*.py"))


def tracked_files(root: Path) -> list[Path]:
    """The files of the checkout `root` that git lists; skips the test where there is no git."""
    git = shutil.which("git")
    if git is None or not (root / ".git").exists():
        pytest.skip("the tree is no git checkout")
    listed = subprocess.run([git, "ls-files", "-z"], cwd=root, capture_output=True, check=True)
    paths = [root / name for name in listed.stdout.decode().split("\0") if name]
    # A file which the working tree has deleted is listed until the deletion is staged.
    return [path for path in paths if path.is_file()]


def statements_of(source: str) -> Iterator[ast.AST]:
    """Every statement, in the order of `ast.walk`, which takes most of its time in expressions."""
    found = deque[ast.AST](ast.parse(source).body)
    while found:
        node = found.popleft()
        for name in _BLOCKS:
            found.extend(getattr(node, name, ()))
        yield node


def functions_of(source: str) -> Iterator[tuple[Function, int]]:
    """Every function with its lines, docstring included and decorators not."""
    for node in statements_of(source):
        if isinstance(node, Function):
            yield node, (node.end_lineno or node.lineno) - node.lineno + 1


def comment_lines(source: str) -> int:
    """Lines that are a comment, or end with one that is no instruction to a tool."""
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    return sum(
        token.type == tokenize.COMMENT
        and not token.string.startswith(("# noqa", "# type:", "# pyright:", "#!"))
        for token in tokens
    )


def docstring_lines(source: str) -> int:
    """Lines of strings that are statements."""
    return sum(
        (node.end_lineno or node.lineno) - node.lineno + 1
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def duplicate_classes(paths: Iterable[Path]) -> dict[str, list[Path]]:
    """Names that several classes have, leading underscores ignored, and the modules of these."""
    found: defaultdict[str, list[Path]] = defaultdict(list)
    for path in paths:
        for node in statements_of(path.read_text(encoding="utf-8")):
            if isinstance(node, ast.ClassDef):
                found[node.name.lstrip("_")].append(path)
    return {name: where for name, where in sorted(found.items()) if len(where) > 1}
