"""The closed forms of the fixed machines use no code of the model, as those of the product."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

ALLOWED = ("kernbench.oracle.theory.", "tests.fidelity.theory.", "runtime.core.")


def test_the_closed_forms_import_theory_and_nothing_of_the_model():
    modules = [
        path for path in Path(__file__).parent.glob("*.py") if not path.name.startswith("test_")
    ]
    assert len(modules) >= 8
    assert [
        f"{path.name}: {name}"
        for path in modules
        for name in _imported(path.read_text(encoding="utf-8"))
        if name.partition(".")[0] not in sys.stdlib_module_names and not name.startswith(ALLOWED)
    ] == []


def test_an_import_of_the_model_is_seen():
    assert [*_imported("from runtime.model import graph")] == ["runtime.model"]
    assert [*_imported("import simpy")] == ["simpy"]


def _imported(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.ImportFrom(module=str(module)):
                yield module
            case ast.Import(names=names):
                yield from (alias.name for alias in names)
            case _:
                pass
