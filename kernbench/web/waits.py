"""What the programs of each PE waited for, and the operations that queued at each link."""

from typing import Any

import numpy as np

from kernbench.run_records import RecordedRun
from runtime.core.run_tables import OPS, PROGRAMS, STEPS

MOST_LINES = 6
"""Statements with the longest waits, for each PE."""
MOST_ROWS = 30_000


def program_waits(records: RecordedRun, most_rows: int = MOST_ROWS) -> dict[str, list[Any]]:
    """For each PE the statements that waited longest: operation, cause, line, number and time.

    At most `most_rows` over all SIPs, the longest.
    """
    found: list[tuple[Any, ...]] = []
    for sip in records.sips:
        steps, programs = records.table(STEPS, sip), records.table(PROGRAMS, sip)
        places = {
            int(number): (int(cube), int(pe))
            for number, cube, pe in zip(
                programs["program"], programs["cube"], programs["pe"], strict=True
            )
        }
        sums: dict[tuple[Any, ...], list[int]] = {}
        operations, causes, lines = (steps.text(name) for name in ("operation", "cause", "line"))
        waited = steps["end_ps"] - steps["issued_ps"]
        for row in np.flatnonzero(waited > 0).tolist():
            place = places[int(steps["program"][row])]
            key = (*place, operations[row], causes[row], lines[row])
            total = sums.setdefault(key, [0, 0])
            total[0] += 1
            total[1] += int(waited[row])
        by_place: dict[tuple[int, int], int] = {}
        for key, (count, waited_ps) in sorted(
            sums.items(), key=lambda each: (-each[1][1], each[0])
        ):
            by_place[key[:2]] = by_place.get(key[:2], 0) + 1
            if by_place[key[:2]] <= MOST_LINES:
                found.append((sip, *key, count, waited_ps))
    found = sorted(sorted(found, key=lambda row: -row[-1])[:most_rows], key=lambda row: row[:3])
    return _columns("sip cube pe operation cause line count waited_ps", found)


def link_waits(records: RecordedRun) -> dict[str, list[Any]]:
    """For each link at which packets queued longest: the operations by name, number and time."""
    found: list[tuple[Any, ...]] = []
    for sip in records.sips:
        ops = records.table(OPS, sip)
        links, names, engines = ops.text("link"), ops.text("name"), ops.text("engine")
        sums: dict[tuple[str, str], list[int]] = {}
        for row in np.flatnonzero(ops["link_ps"] > 0).tolist():
            total = sums.setdefault((links[row], f"{engines[row]} {names[row]}"), [0, 0])
            total[0] += 1
            total[1] += int(ops["link_ps"][row])
        found += [(sip, *key, *total) for key, total in sorted(sums.items())]
    return _columns("sip link operation count waited_ps", found)


def _columns(names: str, rows: list[tuple[Any, ...]]) -> dict[str, list[Any]]:
    return {name: [row[at] for row in rows] for at, name in enumerate(names.split())}
