"""The loads of the servers of one SIP over time, in C; see `sip_node.chip.link_loads`."""

from runtime.core.run_tables import LINKS
from sip_node.compiled.server cimport FifoServer
from sip_node.compiled.time_bins cimport ServiceBatch, TimeBins

cdef enum:
    # Rows that are passed on together: memory for more would be new to the process.
    PIECE_BYTES = 1 << 18

cdef Py_ssize_t LINK_BYTES = LINKS.row_bytes


cdef class LinkLoads:
    """The twin of `ReferenceLinkLoads`."""

    def __init__(self, recorder):
        self.recorder, self.watched, self.batch = recorder, [], ServiceBatch()

    def watch(self, kind, *servers):
        """See the reference."""
        cdef TimeBins bins
        for server in servers:
            bins = TimeBins.__new__(TimeBins, self.batch)
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
        cdef dict loads = {}, of_kind
        cdef list rows = []
        cdef Py_ssize_t nbytes = 0
        self.batch.sort_in()
        for kind, server, each in self.watched:
            bins = <TimeBins> each
            if bins.has_load():
                loads.setdefault(kind, {}).setdefault(server.name, []).append(bins)
        self.watched = []
        text = self.recorder.text
        for kind in sorted(loads):
            of_kind, kind_text = loads[kind], None
            # Names alone, which are compared as bytes.
            for name in sorted(of_kind):
                link = text(name)
                if kind_text is None:
                    kind_text = text(kind)
                for each in of_kind[name]:
                    bins = <TimeBins> each
                    bins.widen_to(self.batch.width)
                    rows.append(bins.packed(link, kind_text))
                    nbytes += bins.size * LINK_BYTES
                    bins.release()
                if nbytes >= PIECE_BYTES:
                    self.recorder.add(LINKS, b"".join(rows))
                    rows, nbytes = [], 0
        self.recorder.add(LINKS, b"".join(rows))
