"""The loads of links and memories within an interval of a run."""

import numpy as np
from msgspec import Struct

from kernbench.explain.records import RunRecords
from runtime.core.run_tables import LINKS


class ScopeLoad(Struct, frozen=True):
    """A link, a channel or a port in an interval: its bytes and packets, and its busy time.

    The bins at the ends of the interval count with the part of them that is inside.
    """

    sip: int
    name: str
    kind: str
    nbytes: int
    packets: int
    busy_ps: int
    queued_ps: int

    @property
    def gbs(self) -> float:
        """The rate while it is busy."""
        return self.nbytes * 1000 / self.busy_ps if self.busy_ps else 0.0

    @property
    def title(self) -> str:
        """The name with its SIP."""
        return self.name if self.name.startswith("sip ") else f"sip{self.sip}.{self.name}"


def loads_within(records: RunRecords, begin_ps: int, end_ps: int) -> list[ScopeLoad]:
    """The loads of all links in an interval, the busiest first."""
    loads = list[ScopeLoad]()
    for sip in records.sips:
        table = records.table(LINKS, sip)
        if not len(table):
            continue
        bin_ps = records.bin_ps
        first = table["bin"] * bin_ps
        inside = np.minimum(first + bin_ps, end_ps) - np.maximum(first, begin_ps)
        chosen = np.flatnonzero(inside > 0)
        names, kinds = table.text("link"), table.text("kind")
        share = inside[chosen] / bin_ps
        codes = names.codes[chosen]
        columns = ("nbytes", "packets", "busy_ps", "queued_ps")
        sums: list[list[float]] = [
            np.bincount(codes, table[column][chosen] * share, len(names.values)).tolist()
            for column in columns
        ]
        rows: dict[int, int] = dict(zip(codes.tolist(), chosen.tolist(), strict=True))
        for code, row in sorted(rows.items()):
            nbytes, packets, busy_ps, queued_ps = (round(each[code]) for each in sums)
            loads.append(
                ScopeLoad(
                    sip=sip,
                    name=names.values[code],
                    kind=kinds[row],
                    nbytes=nbytes,
                    packets=packets,
                    busy_ps=busy_ps,
                    queued_ps=queued_ps,
                )
            )
    return sorted(loads, key=lambda load: (-load.busy_ps, load.sip, load.name))


def busiest_within(records: RunRecords, begin_ps: int, end_ps: int) -> int:
    """The longest busy time of a link or memory in an interval."""
    return max((load.busy_ps for load in loads_within(records, begin_ps, end_ps)), default=0)
