"""The rules of size, over everything that ships."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MODULES = sorted(
    path
    for package in ("runtime", "sip_node", "coordinator", "benches")
    for path in (ROOT / package).rglob("*.py")
)
MAX_MODULE_LINES = 400
MAX_FUNCTION_LINES = 60


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def long_functions(source: str) -> list[str]:
    """The functions of `source` that are longer than the limit, decorators and docstring included."""
    functions = [
        n
        for n in ast.walk(ast.parse(source))
        if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    lines = {
        f"{n.name} at line {n.lineno}": (n.end_lineno or n.lineno) - n.lineno + 1 for n in functions
    }
    return [
        f"{name}: {length} lines" for name, length in lines.items() if length > MAX_FUNCTION_LINES
    ]


@pytest.mark.parametrize("path", MODULES, ids=_name)
def test_a_module_has_one_idea_and_its_functions_fit_on_a_page(path: Path):
    source = path.read_text()
    assert len(source.splitlines()) <= MAX_MODULE_LINES
    assert long_functions(source) == []


def test_the_measure_sees_a_long_function():
    body = "    pass\n" * MAX_FUNCTION_LINES
    assert long_functions(f"def f():\n{body}") == ["f at line 1: 61 lines"]
