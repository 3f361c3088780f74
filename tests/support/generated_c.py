"""Calls of Python's C API in the compiled core, by line of the source text.

Cython makes an access of a Python attribute of each name whose C type it does not find, without a
word: the result is right, and slow.
"""

import ast
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from hatch_build import _translation

ROOT = Path(__file__).parents[2]
BY_PYTHON = re.compile(
    r"\b(__Pyx_PyObject_GetAttrStr|__Pyx_PyObject_SetAttrStr|__Pyx_GetModuleGlobalName"
    r"|__Pyx_PyObject_FastCall\w*|__Pyx_PyObject_Call\w*|PyObject_RichCompare)\("
)
"""An attribute, a global name, a call or a comparison of Python."""
_MARK = "# hot"
_TRANSLATE = """import hatch_build, pathlib, sys
hatch_build._translate(sys.argv[2:], pathlib.Path(sys.argv[1]))"""
_NAME = re.compile(r"^\s*c(?:p)?def\s.*?(\w+)\(", re.DOTALL)


def hot_functions(text: Path) -> list[str]:
    """The functions that the `.pxd` of a text marks: the declaration follows the comment."""
    marked = text.with_suffix(".pxd").read_text("utf-8").split(f"{_MARK}\n")[1:]
    # Between the comment and the declaration there may be a decorator.
    names = [_NAME.search(part[part.index("def ") - 2 :]) for part in marked]
    return [name[1] for name in names if name is not None]


def translated(texts: Sequence[Path], folder: Path) -> dict[Path, Path]:
    """The C file in `folder` of each text, as the build of the core translates it.

    One process translates all of them: the `.pxd` files are most of the work, and are read once.
    Raises `CalledProcessError` for a text that Cython refuses.
    """
    sources = [text.relative_to(ROOT).as_posix() for text in texts]
    subprocess.run(
        [sys.executable, "-c", _TRANSLATE, str(folder), *sources],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    return {text: _translation(source, folder) for text, source in zip(texts, sources, strict=True)}


def calls_of_python(text: Path, made: Path) -> dict[int, set[str]]:
    """Calls of Python in the translation of a text, by line, except where it raises an error.

    A line below a comment that begins with `By Python` does so with a reason.
    """
    relative = text.relative_to(ROOT).as_posix()
    found, line = dict[int, set[str]](), 0
    place = re.compile(rf'\s*/\* "{re.escape(relative)}":(\d+)')
    for each in made.read_text("utf-8").splitlines():
        if here := place.match(each):
            line = int(here[1])
        elif line and not each.startswith(("static", "#")) and (call := BY_PYTHON.search(each)):
            found.setdefault(line, set()).add(call[1])
    source = ast.parse(text.read_text("utf-8"))
    raising = {
        number
        for node in ast.walk(source)
        if isinstance(node, ast.Raise | ast.Assert)
        for number in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    lines = text.read_text("utf-8").splitlines()
    explained = {number + 2 for number, each in enumerate(lines) if "# By Python" in each}
    return {number: calls for number, calls in found.items() if number not in raising | explained}


def lines_of(text: Path, function: str) -> set[int]:
    """The lines of the functions of this name in a text, but for their first one."""
    return {
        number
        for node in ast.walk(ast.parse(text.read_text("utf-8")))
        if isinstance(node, ast.FunctionDef) and node.name == function
        for number in range(node.body[0].lineno, (node.end_lineno or 0) + 1)
    }
