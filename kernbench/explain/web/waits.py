"""Waits of the programs of each PE, and the operations that queued at each link."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernbench.explain.records import RecordedRun
from runtime.core.run_tables import NONE, OPS, PROGRAMS, STEPS

MOST_LINES = 6
"""Statements with the longest waits, for each PE."""
MOST_ROWS = 30_000


def program_waits(records: RecordedRun, most_rows: int = MOST_ROWS) -> dict[str, list[Any]]:
    """The statements of each PE that waited longest: operation, cause, line, number and time.

    At most `most_rows` over all SIPs, the longest.
    """
    waits = [row for sip in records.sips for row in _waits_of_sip(records, sip)]
    waits = sorted(sorted(waits, key=lambda row: -row[-1])[:most_rows], key=lambda row: row[:3])
    return _columns("sip cube pe operation cause line count waited_ps", waits)


def _waits_of_sip(records: RecordedRun, sip: int) -> list[tuple[Any, ...]]:
    """The statements of each PE with the longest waits, in descending order."""
    steps, programs = records.table(STEPS, sip), records.table(PROGRAMS, sip)
    waited_ps = steps["end_ps"] - steps["issued_ps"]
    steps, waited_ps = steps.take(waited_ps > 0), waited_ps[waited_ps > 0]
    of_program = np.full((2, int(programs["program"].max(initial=0)) + 1), NONE, np.int64)
    of_program[:, programs["program"]] = programs["cube"], programs["pe"]
    operations, causes, lines = (steps.text(name) for name in ("operation", "cause", "line"))
    keys = (*of_program[:, steps["program"]], operations.codes, causes.codes, lines.codes)
    sums = [
        (cube, pe, operations.values[operation], causes.values[cause], lines.values[line], *rest)
        for cube, pe, operation, cause, line, *rest in _sums(keys, waited_ps)
    ]
    longest: list[tuple[Any, ...]] = []
    by_place: dict[tuple[int, int], int] = {}
    for row in sorted(sums, key=lambda each: (-each[-1], each)):
        place = by_place[row[:2]] = by_place.get(row[:2], 0) + 1
        if place <= MOST_LINES:
            longest.append((sip, *row))
    return longest


def link_waits(records: RecordedRun) -> dict[str, list[Any]]:
    """The operations at each link at which packets queued longest: name, number and time."""
    waits: list[tuple[Any, ...]] = []
    for sip in records.sips:
        ops = records.table(OPS, sip)
        ops = ops.take(ops["link_ps"] > 0)
        links, engines, names = (ops.text(name) for name in ("link", "engine", "name"))
        keys = (links.codes, engines.codes, names.codes)
        waits += sorted(
            (sip, links.values[link], f"{engines.values[engine]} {names.values[name]}", *rest)
            for link, engine, name, *rest in _sums(keys, ops["link_ps"])
        )
    return _columns("sip link operation count waited_ps", waits)


def _sums(keys: tuple[NDArray[Any], ...], values: NDArray[Any]) -> list[list[int]]:
    """Each different key with its number of rows and the sum of their values."""
    different, of_row = np.unique(np.stack(keys), axis=1, return_inverse=True)
    of_row = of_row.reshape(-1)
    sums = np.zeros(different.shape[1], np.int64)
    np.add.at(sums, of_row, values)
    counts = np.bincount(of_row, minlength=different.shape[1])
    rows: list[list[int]] = np.vstack([different, counts, sums]).T.tolist()
    return rows


def _columns(names: str, rows: list[tuple[Any, ...]]) -> dict[str, list[Any]]:
    return {name: [row[index] for row in rows] for index, name in enumerate(names.split())}
