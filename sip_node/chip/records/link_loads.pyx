"""The loads of the servers of one SIP over time, in C; link_loads.py has what it reports."""

from runtime.core.run_tables import LINKS
from sip_node.chip.fabric.server cimport FifoServer
from sip_node.chip.records.time_bins cimport LinkRow, TimeBins

cdef enum:
    # 24 KB, which stay in the caches until they are passed on.
    ROWS = 512


cdef class LinkLoads(PackedRows):
    """The loads of the SIP of `recorder`."""

    def __init__(self, recorder):
        self.start(recorder, LINKS, sizeof(LinkRow), ROWS)
        self.watched, self.batch = [], ServiceBatch()

    def watch(self, kind, *servers):
        """See the version in Python."""
        cdef TimeBins bins
        for server in servers:
            bins = TimeBins.__new__(TimeBins, self.batch)
            if isinstance(server, FifoServer):
                (<FifoServer> server).bins = bins
            else:
                server.bins = bins
            self.watched.append((kind, server, bins))

    def watch_channels(self, kind, channels):
        """See the version in Python."""
        for channel in channels:
            if isinstance(channel, FifoServer) or (
                hasattr(channel, "bins") and hasattr(channel, "name")
            ):
                self.watch(kind, channel)

    def report(self):
        """See the version in Python."""
        cdef TimeBins bins
        cdef dict loads = {}, of_kind
        cdef int link, kind_text
        self.batch.sort_in()
        for kind, server, each in self.watched:
            bins = <TimeBins> each
            if bins.has_load():
                loads.setdefault(kind, {}).setdefault(server.name, []).append(bins)
        self.watched = []
        for kind in sorted(loads):
            of_kind = loads[kind]
            # Names alone, which are compared as bytes.
            for name in sorted(of_kind):
                link, kind_text = self.text(name), self.text(kind)
                for each in of_kind[name]:
                    bins = <TimeBins> each
                    bins.widen_to(self.batch.width)
                    bins.pack(self, link, kind_text)
                    bins.release()
        self.pass_on()
