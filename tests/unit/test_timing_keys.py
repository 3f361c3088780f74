"""A rule about time stands in the model and in `kernbench.oracle.theory`, and in no third place."""

import ast
from collections.abc import Iterator
from pathlib import Path

from runtime.model.keys import hardware_keys

ROOT = Path(__file__).parents[2]
KERNBENCH, FIDELITY = ROOT / "kernbench", ROOT / "tests" / "fidelity"
KEYS = {key.path for key in hardware_keys() if key.path.endswith(("_ns", "ns_per_mm"))}
DRAWS = FIDELITY / "machines" / "drawn.py"
"""Scales delays for random machines, and derives no time."""
FIELDS = {path.rpartition(".")[2] for path in KEYS}


def test_no_module_but_those_of_theory_reads_a_delay_of_the_hardware() -> None:
    theory = KERNBENCH / "oracle" / "theory", FIDELITY / "theory"
    modules = [
        path
        for path in (*KERNBENCH.rglob("*.py"), *FIDELITY.glob("*/*.py"))
        if path != DRAWS and not set(theory) & set(path.parents)
    ]
    assert len(modules) > 300
    assert [
        f"{path.relative_to(ROOT)}:{line}"
        for path in modules
        for line in reads(path.read_text(encoding="utf-8"))
    ] == []


def test_each_way_of_reading_a_delay_is_seen() -> None:
    assert [*reads('file.ps("pe.dma.overhead_ns")')] == [1]
    assert [*reads('file.number("ns_per_mm")')] == [1]
    assert [*reads('time = file["ucie.overhead_ns"]')] == [1]
    assert [*reads("ps_from_ns(topology.pe.dma.overhead_ns)")] == [1]


def test_a_delay_may_be_changed() -> None:
    assert [*reads('file.with_values({"pe.dma.overhead_ns": 3.0})')] == []
    assert [*reads("row.time_ns")] == []


def reads(source: str) -> Iterator[int]:
    """The lines that read a delay by its key, or as a field of the topology."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Call(func=ast.Attribute(attr="ps" | "number"), args=[ast.Constant(value=key)]):
                if key in KEYS:
                    yield node.lineno
            case ast.Subscript(slice=ast.Constant(value=key), ctx=ast.Load()):
                if key in KEYS:
                    yield node.lineno
            case ast.Attribute(attr=field, ctx=ast.Load()):
                if field in FIELDS:
                    yield node.lineno
            case _:
                pass
