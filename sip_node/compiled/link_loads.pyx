"""The loads of the servers of one SIP over time, in C; see `sip_node.chip.link_loads`."""

from operator import itemgetter

from runtime.core.run_tables import LINKS
from sip_node.compiled.server cimport FifoServer
from sip_node.compiled.time_bins cimport TimeBins


cdef class LinkLoads:
    """The twin of `ReferenceLinkLoads`."""

    def __init__(self, recorder):
        self.recorder, self.watched = recorder, []

    def watch(self, kind, *servers):
        """See the reference."""
        cdef TimeBins bins
        for server in servers:
            bins = TimeBins.__new__(TimeBins)
            if isinstance(server, FifoServer):
                (<FifoServer> server).bins = bins
            else:
                server.bins = bins
            self.watched.append((kind, server, bins))

    def watch_channels(self, kind, channels):
        """See the reference."""
        for channel in channels:
            if isinstance(channel, FifoServer) or (
                hasattr(channel, "bins") and hasattr(channel, "name")
            ):
                self.watch(kind, channel)

    def report(self):
        """See the reference."""
        cdef TimeBins bins
        cdef int width = 0
        cdef dict kinds = {}
        cdef list loads = [], rows = []
        for kind, server, each in self.watched:
            bins = <TimeBins> each
            if bins.size or bins.count:
                width = max(width, bins.needed_width())
                loads.append((kind, server.name, bins))
        self.watched = []
        loads.sort(key=itemgetter(0, 1))
        text = self.recorder.text
        for kind, name, each in loads:
            bins = <TimeBins> each
            bins.widen_to(width)
            link = text(name)
            if kind not in kinds:
                kinds[kind] = text(kind)
            rows.append(bins.packed(link, kinds[kind]))
        self.recorder.add(LINKS, b"".join(rows))
