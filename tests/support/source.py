"""Measures of Python source: sizes, comments, names of classes. A text is parsed once a process."""

import ast
import io
import shutil
import subprocess
import tokenize
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import pytest

_STATEMENTS = (ast.stmt, ast.excepthandler, ast.match_case)
"""The nodes in which there are functions and classes; no expression has one."""


@dataclass
class Function:
    """A function: its lines, docstring included and decorators not, and the names in it.

    `asserts`: it has the statement; in the functions of `names` there may be more.
    """

    name: str
    line: int
    lines: int
    names: set[str] = field(default_factory=set[str])
    asserts: bool = False


@dataclass
class Module:
    """Functions and classes of a text, also those in others, outer ones first; its docstrings with
    their lines.
    """

    functions: list[Function] = field(default_factory=list[Function])
    classes: list[str] = field(default_factory=list[str])
    docstrings: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])


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


@cache
def parsed(source: str) -> Module:
    """The functions, classes and docstrings of `source`."""
    module = Module()
    _add(ast.parse(source), module, ())
    return module


def _add(node: ast.AST, module: Module, around: tuple[Function, ...]) -> None:
    """Add what is below a node, and the names in it to the functions around it."""
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            function = Function(name, node.lineno, lines)
            module.functions.append(function)
            around = (*around, function)
        case ast.ClassDef(name=name):
            module.classes.append(name)
        case ast.Expr(value=ast.Constant(value=str(text))):
            module.docstrings.append((node.lineno, text))
        case ast.Assert():
            for function in around:
                function.asserts = True
        case ast.Name(id=name) | ast.Attribute(attr=name):
            for function in around:
                function.names.add(name)
        case _:
            pass
    for child in ast.iter_child_nodes(node):
        if around or isinstance(child, _STATEMENTS):
            _add(child, module, around)


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
    modules: defaultdict[str, list[Path]] = defaultdict(list)
    for path in paths:
        for name in parsed(path.read_text(encoding="utf-8")).classes:
            modules[name.lstrip("_")].append(path)
    return {name: paths for name, paths in sorted(modules.items()) if len(paths) > 1}
