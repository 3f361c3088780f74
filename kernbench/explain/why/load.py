"""The load of links, memories and engines over the whole run: busy time, queues, fullest bin."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kernbench.explain.records import Columns, RunRecords
from kernbench.explain.why.cursor import component
from kernbench.explain.why.intervals import Coverage, union
from runtime.core.run_tables import LINKS, NONE, OPS

BUSIEST = 10
"""Resources of a kind that reports show."""
ENGINE, TRANSFER_ENGINE = "engine", "transfer engine"
"""The kinds of engines of a PE; links and parts of memories have the kinds of their table."""
_KINDS = {
    "pe_gemm": ENGINE,
    "pe_math": ENGINE,
    "pe_dma": TRANSFER_ENGINE,
    "pe_fetch_store": TRANSFER_ENGINE,
}
_PLACES = 1 << 24
"""Coordinates of a PE as one number are smaller."""


class Load(Struct, frozen=True):
    """A link, a channel or port of a memory, or an engine.

    `busy_ps` is the time for which it served. A transfer engine serves several operations at once,
    each for as long as its data is on its way: it is busy while any of them is.
    `queued_ps` sums the waits of its packets or operations. `peak` is the busy share of the bin of
    time in which it was busiest, which begins at `peak_ps`.
    """

    sip: int
    name: str
    kind: str
    busy_ps: int
    queued_ps: int
    count: int
    nbytes: int
    peak: float
    peak_ps: int

    @property
    def noun(self) -> str:
        """The kind in a sentence: engines of both kinds are engines."""
        return ENGINE if self.kind == TRANSFER_ENGINE else self.kind

    @property
    def title(self) -> str:
        """The name with its SIP, which components of a PE have in their own."""
        return self.name if self.name.startswith("sip ") else f"sip{self.sip}.{self.name}"


def loads(records: RunRecords, most: int | None = BUSIEST) -> dict[str, list[Load]]:
    """The busiest resources of all SIPs by kind, `most` of each or all."""
    by_kind = dict[str, list[Load]]()
    for sip in records.sips:
        links = _link_loads(records.table(LINKS, sip), sip, records.bin_ps, most)
        ops = records.table(OPS, sip)
        engines = [
            load
            for kind in (ENGINE, TRANSFER_ENGINE)
            for load in _engine_loads(ops, kind, sip, records.bin_ps, most)
        ]
        for load in [*links, *engines]:
            by_kind.setdefault(load.kind, []).append(load)
    return {
        kind: sorted(by_kind[kind], key=lambda load: (-load.busy_ps, load.sip, load.name))[:most]
        for kind in sorted(by_kind)
    }


def busiest(by_kind: dict[str, list[Load]]) -> Load | None:
    """The resource with the longest busy time, of those that serve one after the other."""
    # More channels of a transfer engine at once shorten its busy time.
    serial = [each for kind in by_kind if kind != TRANSFER_ENGINE for each in by_kind[kind]]
    return max(serial, key=lambda load: load.busy_ps, default=None)


def _link_loads(links: Columns, sip: int, bin_ps: int, most: int | None) -> Iterator[Load]:
    """The busiest of each kind."""
    if not len(links):
        return
    names, kinds = links.text("link"), links.text("kind")
    order = np.argsort(names.codes, kind="stable")
    codes = names.codes[order]
    firsts = np.flatnonzero(np.append(True, codes[1:] != codes[:-1]))
    ends = np.append(firsts[1:], len(order))
    busy_ps = np.add.reduceat(links["busy_ps"][order], firsts)
    kind_codes = kinds.codes[order[firsts]]
    by_load = np.argsort(-busy_ps, kind="stable")
    # `np.unique` imports the masked arrays of numpy, in 10 ms.
    for kind in sorted(set(kind_codes.tolist())):
        for load in by_load[kind_codes[by_load] == kind][:most]:
            rows = order[firsts[load] : ends[load]]
            peak = rows[int(np.argmax(links["busy_ps"][rows]))]
            yield Load(
                sip=sip,
                name=names[int(rows[0])],
                kind=kinds[int(rows[0])],
                busy_ps=int(busy_ps[load]),
                queued_ps=int(links["queued_ps"][rows].sum()),
                count=int(links["packets"][rows].sum()),
                nbytes=int(links["nbytes"][rows].sum()),
                peak=float(links["busy_ps"][peak]) / bin_ps,
                peak_ps=int(links["bin"][peak]) * bin_ps,
            )


def _engine_loads(
    ops: Columns, kind: str, sip: int, bin_ps: int, most: int | None
) -> Iterator[Load]:
    """The busiest engines of a kind."""
    of_kind = ops.text("engine").matching(lambda name: _KINDS.get(name) == kind)
    ops = ops.take(np.flatnonzero(of_kind & (ops["pe"] != NONE)))
    if not len(ops):
        return
    keys = _keys(ops)
    engines, numbers = np.unique(keys, return_inverse=True)
    lengths = _busy_ps(numbers, len(engines), ops)
    order = np.argsort(-lengths, kind="stable")[:most]
    # One pass over the rows for the few engines that are shown, instead of one for each.
    by_engine = np.argsort(numbers, kind="stable")
    limits = np.searchsorted(numbers[by_engine], np.arange(len(engines) + 1))
    for number in order:
        rows = by_engine[limits[number] : limits[number + 1]]
        yield _engine_load(ops, rows, kind, sip, bin_ps)


def _engine_load(ops: Columns, rows: NDArray[Any], kind: str, sip: int, bin_ps: int) -> Load:
    coverage = Coverage.of(ops["start_ps"][rows], ops["end_ps"][rows])
    edges = np.arange(0, int(ops["end_ps"][rows].max()) + bin_ps, bin_ps)
    in_bins = np.diff(coverage.until(edges))
    peak = int(np.argmax(in_bins)) if len(in_bins) else 0
    cube, pe = int(ops["cube"][rows[0]]), int(ops["pe"][rows[0]])
    return Load(
        sip=sip,
        name=component(cube, pe, ops.text("engine")[int(rows[0])]),
        kind=kind,
        busy_ps=int(coverage.before[-1]),
        queued_ps=int((ops["start_ps"][rows] - ops["requested_ps"][rows]).sum()),
        count=len(rows),
        nbytes=int(ops["nbytes"][rows].sum()),
        peak=float(in_bins[peak]) / bin_ps if len(in_bins) else 0.0,
        peak_ps=peak * bin_ps,
    )


def _busy_ps(numbers: NDArray[Any], count: int, ops: Columns) -> NDArray[np.int64]:
    """The time of the union of the operations of each engine."""
    # One axis for all engines: each has a stretch of it, longer than the run.
    span = 1 + int(ops["end_ps"].max())
    shifts = numbers.astype(np.int64) * span
    begins, ends = union(ops["start_ps"] + shifts, ops["end_ps"] + shifts)
    lengths = np.zeros(count, np.int64)
    np.add.at(lengths, begins // span, ends - begins)
    return lengths


def _keys(ops: Columns) -> NDArray[np.int64]:
    places = ops["cube"].astype(np.int64) * 4096 + ops["pe"]
    return ops.text("engine").codes.astype(np.int64) * _PLACES + places
