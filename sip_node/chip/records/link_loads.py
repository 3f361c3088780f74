"""The loads of the links, ports and memory channels of one SIP over time, for the records of a run.

Each of them has bins of a width of its own. What it reports are their begins, in units of the least
width; the coordinator gives the bins of all SIPs one width.
"""

from collections.abc import Sequence
from operator import itemgetter
from typing import Literal, Protocol

from runtime.core.run_tables import LINKS
from sip_node.chip.records.run_recorder import RunRecorder
from sip_node.chip.records.time_bins import LEAST_SHIFT, TimeBins

LoadKind = Literal["link", "memory", "port"]
"""A link between two nodes; a channel of a memory; a port: of a SRAM, of a TCM, between SIPs."""


class LoadedServer(Protocol):
    """A server whose load is recorded."""

    bins: TimeBins | None
    """The load of the server, in a run with records."""

    @property
    def name(self) -> str:
        """The name that all messages have."""
        ...


class LinkLoads:
    """The loads of the SIP of `recorder`."""

    def __init__(self, recorder: RunRecorder) -> None:
        self._recorder = recorder
        self._watched: list[tuple[LoadKind, LoadedServer, TimeBins]] = []

    def watch(self, kind: LoadKind, *servers: LoadedServer) -> None:
        """Record the loads of servers, which have served nothing yet."""
        for server in servers:
            server.bins = bins = TimeBins()
            self._watched.append((kind, server, bins))

    def watch_channels(self, kind: LoadKind, channels: Sequence[object]) -> None:
        """Record the load of the channels of a memory, without those that count none."""
        for channel in channels:
            if hasattr(channel, "bins") and hasattr(channel, "name"):
                self.watch(kind, channel)  # type: ignore[arg-type]

    def report(self) -> None:
        """Pass on all loads: at the end of the run, once."""
        # Of thousands of links, most have served nothing in a short run.
        loads = [(kind, server.name, bins) for kind, server, bins in self._watched if bins.is_used]
        self._watched = []
        text = self._recorder.text
        # One width for the SIP, which those of all SIPs have in most runs: rows are united here, in
        # C, and not in the command.
        shift = max((bins.shift for _, _, bins in loads), default=LEAST_SHIFT)
        pack, scale = LINKS.packer.pack, shift - LEAST_SHIFT
        rows = list[bytes]()
        for kind, name, bins in sorted(loads, key=itemgetter(0, 1)):
            bins.widen(shift)
            link, kind_text = text(name), text(kind)
            rows.extend(
                pack(link, kind_text, number << scale, *load) for number, *load in bins.rows()
            )
        self._recorder.add(LINKS, b"".join(rows))
