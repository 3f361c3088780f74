"""The loads of a SIP: its links, ports and memories by name, in bins of one width."""

from typing import Any, NamedTuple

import pytest

from runtime.core.run_tables import LEAST_BIN_PS, LINKS, MOST_BINS
from sip_node.chip.fabric.server import Server
from sip_node.chip.records.link_loads import LinkLoads
from sip_node.chip.records.run_recorder import RunRecorder
from tests.support.interpreted import interpreted

Interpreted = interpreted("sip_node.chip.records.link_loads").LinkLoads
both = pytest.mark.parametrize("kind", [LinkLoads, Interpreted], ids=["core", "interpreted"])
GBS = 1000.0
"""A byte a picosecond."""
Row = tuple[str, str, int, int, int, int, int]
"""Link, kind, bin, bytes, busy_ps, queued_ps, packets."""


class Uncounted(NamedTuple):
    """A channel that counts no load."""

    name: str


class Collected:
    """The rows and texts of a recorder."""

    def __init__(self) -> None:
        self.recorder = RunRecorder(self._take)
        self.texts: list[str] = []
        self.packed = b""

    def _take(self, table: str, rows: bytes, texts: tuple[str, ...]) -> None:
        assert table == LINKS.name
        self.texts += texts
        self.packed += rows

    def rows(self) -> list[Row]:
        self.recorder.flush()
        found = LINKS.packer.iter_unpack(self.packed)
        return [(self.texts[link], self.texts[kind], *load) for link, kind, *load in found]  # type: ignore[misc]


@both
def test_servers_are_sorted_by_kind_and_name_and_only_those_in_use_have_a_text(kind: Any) -> None:
    collected = Collected()
    loads = kind(collected.recorder)
    b, a, idle, port, channel = (Server(name, GBS) for name in ("b", "a", "idle", "a0", "pc0"))
    loads.watch("port", port)
    loads.watch("link", b, idle, a)
    loads.watch_channels("memory", [object(), Uncounted("pc1"), channel])
    for server in (a, b, port, channel):
        server.reserve(0, 0, 10)
    b.reserve(0, 0, 7)
    loads.report()
    assert collected.rows() == [
        ("a", "link", 0, 10, 10, 0, 1),
        ("b", "link", 0, 17, 17, 10, 2),
        ("pc0", "memory", 0, 10, 10, 0, 1),
        ("a0", "port", 0, 10, 10, 0, 1),
    ]
    assert collected.texts == ["a", "link", "b", "pc0", "memory", "a0", "port"]
    # Once.
    loads.report()
    assert len(collected.rows()) == 4


@both
@pytest.mark.parametrize("services", [1, 100])
def test_all_servers_have_the_bins_of_the_server_with_the_widest(kind: Any, services: int) -> None:
    collected = Collected()
    loads = kind(collected.recorder)
    late, early = Server("late", GBS), Server("early", GBS)
    loads.watch("link", late, early)
    for _ in range(services):
        early.reserve(0, 0, 3 * LEAST_BIN_PS)
    last = 4 * MOST_BINS * LEAST_BIN_PS - 1
    late.reserve(last, last, 1)
    loads.report()
    # Four times the least width, in whose units the begins of the bins are.
    *rows, end = collected.rows()
    begins = list(range(0, 3 * services, 4))
    assert [row[2] for row in rows] == begins
    assert [row[4] for row in rows] == [
        min(4, 3 * services - begin) * LEAST_BIN_PS for begin in begins
    ]
    assert end == ("late", "link", 4 * (MOST_BINS - 1), 1, 1, 0, 1)
