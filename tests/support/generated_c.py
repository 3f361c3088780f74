"""What the compiled core does by Python's own calls, line by line of a text.

Cython makes an access of a Python attribute of each name whose C type it does not find, without a
word: the result is right, and slow.
"""

import ast
import re
import subprocess
import sys
from pathlib import Path

from hatch_build import TEXT_DIRECTIVES

ROOT = Path(__file__).parents[2]
BY_PYTHON = re.compile(
    r"\b(__Pyx_PyObject_GetAttrStr|__Pyx_PyObject_SetAttrStr|__Pyx_GetModuleGlobalName"
    r"|__Pyx_PyObject_FastCall\w*|__Pyx_PyObject_Call\w*|PyObject_RichCompare)\("
)
"""An attribute, a global name, a call or a comparison of Python."""
_MARK = "# hot"
_NAME = re.compile(r"^\s*c(?:p)?def\s.*?(\w+)\(", re.DOTALL)


def hot_functions(text: Path) -> list[str]:
    """The functions that the `.pxd` of a text marks: the declaration follows the comment."""
    marked = text.with_suffix(".pxd").read_text("utf-8").split(f"{_MARK}\n")[1:]
    # Between the comment and the declaration there may be a decorator.
    names = [_NAME.search(part[part.index("def ") - 2 :]) for part in marked]
    return [name[1] for name in names if name is not None]


def calls_of_python(text: Path, folder: Path) -> dict[int, set[str]]:
    """By line of a text, what it does by Python, except where it raises an error.

    A line below a comment that begins with `By Python` does so with a reason. Raises
    `CalledProcessError` for a text that Cython refuses.
    """
    made = folder / f"{text.stem}.c"
    relative = text.relative_to(ROOT).as_posix()
    directives = [f"--directive={name}={value}" for name, value in TEXT_DIRECTIVES.items()]
    subprocess.run(
        [sys.executable, "-m", "cython", "-3", *directives, relative, "-o", str(made)],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
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
