"""The loads of links, ports and memory channels over time, in bins that the page can hold."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernbench.explain.records import RecordedRun
from runtime.core.run_tables import LINKS

MOST_ROWS = 200_000
"""Rows of loads in a page: at 25 bytes each, 5 MB. Bins are doubled until they suffice."""
COUNTERS = ("nbytes", "busy_ps", "queued_ps", "packets")


class PageLoads:
    """The rows of the tables of links of all SIPs, with bins of `bin_ps`.

    Bins are merged in pairs, so that every sum over the run is that of the tables.
    """

    def __init__(self, records: RecordedRun, most_rows: int = MOST_ROWS) -> None:
        tables = [records.table(LINKS, sip) for sip in records.sips]
        names = sorted({name for each in tables for name in each.text("link").values})
        index = {name: number for number, name in enumerate(names)}
        self.names: list[str] = names
        self.kinds: list[str] = [""] * len(names)
        parts: list[NDArray[np.int64]] = []
        for sip, each in enumerate(tables):
            text, kind = each.text("link"), each.text("kind")
            links = text.mapped([index[name] for name in text.values], np.int64)
            for row in np.unique(text.codes, return_index=True)[1]:
                self.kinds[int(links[row])] = kind[int(row)]
            keys = (np.full(len(each), sip), links, each["bin"])
            parts.append(np.stack([*keys, *(each[name] for name in COUNTERS)]).astype(np.int64))
        rows = np.concatenate(parts, axis=1) if parts else np.zeros((7, 0), np.int64)
        self.recorded_rows, self.recorded_bin_ps = rows.shape[1], records.bin_ps
        self.bin_ps = records.bin_ps
        rows = _merged(rows)
        while rows.shape[1] > most_rows and rows[2].max() > 0:
            rows[2] >>= 1
            self.bin_ps *= 2
            rows = _merged(rows)
        self.rows = rows

    def columns(self) -> dict[str, Any]:
        """The rows as lists by column, in the order of SIP, link and bin."""
        names = ("sip", "link", "bin", *COUNTERS)
        return {name: each.tolist() for name, each in zip(names, self.rows, strict=True)}


def _merged(rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """The rows sorted by SIP, link and bin, those of one bin added."""
    order = np.lexsort(rows[2::-1])
    rows = rows[:, order]
    if rows.shape[1] == 0:
        return rows
    begins = np.flatnonzero(np.r_[True, (np.diff(rows[:3]) != 0).any(axis=0)])
    return np.concatenate([rows[:3, begins], np.add.reduceat(rows[3:], begins, axis=1)])
