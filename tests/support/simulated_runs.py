"""The records of a run inside the process of a test, as those of a directory."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from kernbench.explain.records import Columns, RecordedRun, RunSummary
from kernbench.simulation import Simulation, simulate
from runtime.core.run_tables import BIN_PS, LEAST_BIN_PS, LINKS, Form, RunTable
from runtime.core.simtime import PS_PER_NS
from tests.support.run_tables import Row, default_of

ROOT = Path(__file__).parents[2]


def recorded(
    program: Callable[[int], object], sips: int = 1, *, topology: str | None = None, **options: Any
) -> RecordedRun:
    """Simulate `program`, and return its records."""
    text = topology or (ROOT / "topology.yaml").read_text()
    world = simulate(program, sips, topology=text, record=True, **options)
    return records_of(world, sips, text)


def records_of(world: Simulation, sips: int, topology: str) -> RecordedRun:
    """The records of a run that has ended."""

    def read(table: RunTable, sip: int) -> Columns:
        row = np.dtype([(each.name, str(each.packed)) for each in table.columns])
        rows = np.frombuffer(world.rows.get((sip, table.name), b""), row)
        # A chip sends the begins of its bins in units of the least width.
        metadata = {BIN_PS: str(LEAST_BIN_PS)} if table is LINKS else None
        return Columns.of_rows(table, rows, world.texts.get(sip, []), metadata)

    return _run(read, sips, world.time_ps, topology)


def of_tables(sips: Sequence[Mapping[str, Sequence[Row]]], total_ps: int) -> RecordedRun:
    """The records of hand-made tables."""

    def read(table: RunTable, sip: int) -> Columns:
        texts = dict[str, int]()
        row = np.dtype([(each.name, str(each.packed)) for each in table.columns])
        rows = np.zeros(len(sips[sip][table.name]), row)
        for number, given in enumerate(sips[sip][table.name]):
            for column in table.columns:
                is_text = column.form is Form.TEXT
                value = given.get(column.name, default_of(column.name, is_text=is_text))
                if is_text:
                    value = texts.setdefault(value, len(texts))
                rows[number][column.name] = value
        return Columns.of_rows(table, rows, list(texts), {BIN_PS: str(LEAST_BIN_PS)})

    text = (ROOT / "topology.yaml").read_text()
    return _run(read, len(sips), total_ps, text)


def _run(
    read: Callable[[RunTable, int], Columns], sips: int, total_ps: int, topology: str
) -> RecordedRun:
    summary = RunSummary(
        bench="simulated",
        kind="function",
        program="simulated",
        as_cuda=False,
        sips=sips,
        passed=True,
        error=None,
        digest="0" * 64,
        sim_time_ns=total_ps / PS_PER_NS,
        config_hash="",
        arguments={},
        argv=(),
        data=True,
        versions={},
        protocol=0,
        user_code={},
        folder=str(ROOT),
        files={},
        inode=0,
    )
    return RecordedRun(
        sips=range(sips),
        total_ps=total_ps,
        read=read,
        name="simulated",
        run=summary,
        topology_text=topology,
        ccl_text=(ROOT / "ccl.yaml").read_text(),
        directory=Path("simulated"),
    )
