"""The loads of the links, ports and memory channels of one SIP over time, for the records of a run.

Each of them has bins of a width of its own. What it reports are their begins, in units of the least
width; the coordinator gives the bins of all SIPs one width.
"""

from collections.abc import Sequence
from typing import Literal, Protocol

from runtime.core.run_tables import LINKS
from sip_node.chip.run_recorder import RunRecorder
from sip_node.chip.time_bins import TimeBins

LoadKind = Literal["link", "memory", "port"]
"""A link between two nodes; a channel of a memory; a port: of a SRAM, of a TCM, between SIPs."""


class LoadedServer(Protocol):
    """What has a load."""

    bins: TimeBins | None

    @property
    def name(self) -> str:
        """As in all messages."""
        ...


class LinkLoads:
    """The loads of the SIP of `recorder`."""

    def __init__(self, recorder: RunRecorder) -> None:
        self._recorder = recorder
        self._watched: list[tuple[LoadKind, str, TimeBins]] = []

    def watch(self, kind: LoadKind, server: LoadedServer) -> None:
        """Record the load of a server, which has served nothing yet."""
        server.bins = TimeBins()
        self._watched.append((kind, server.name, server.bins))

    def watch_channels(self, kind: LoadKind, channels: Sequence[object]) -> None:
        """Record the load of the channels of a memory, without those that count none."""
        for channel in channels:
            if hasattr(channel, "bins") and hasattr(channel, "name"):
                self.watch(kind, channel)  # type: ignore[arg-type]

    def report(self) -> None:
        """Pass on all loads: at the end of the run, once."""
        watched, self._watched = sorted(self._watched, key=lambda each: each[:2]), []
        text = self._recorder.text
        for kind, name, bins in watched:
            self._recorder.add(LINKS, bins.packed(text, name, kind))
