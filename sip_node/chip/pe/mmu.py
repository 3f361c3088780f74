"""The MMU of a PE: translates virtual addresses by extents, which MmuMapMsg adds.

Extents instead of pages: a tensor is a few extents of any length, one for each part of it that lies
in one memory. A page table is a list of runs of extents, one for each mapping, which other PEs
share. Look-ups are binary searches, for the run and in it.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator

from runtime.core.requests import Extent
from sip_node.chip.host.commands import ExtentRun


class PeMmu:
    """The page table of one PE, kept as sorted runs that do not overlap."""

    def __init__(self) -> None:
        self._runs: list[ExtentRun] = []
        self._begins: list[int] = []
        # The extent of the last translation: the rows of a block follow each other.
        self._latest: Extent | None = None
        self.mapped = 0
        """The number of mappings so far: translations are what they were while it is."""

    def map(self, run: ExtentRun) -> None:
        """Add mappings. An old extent that a new one overlaps is removed: its range is reused."""
        if not run.extents:
            return
        self.mapped += 1
        # The extent of the last translation may be one that this mapping removes.
        begins, self._latest = self._begins, None
        first = max(bisect_right(begins, run.begin) - 1, 0)
        if first < len(begins) and self._runs[first].end <= run.begin:
            first += 1
        last = max(bisect_left(begins, run.end), first)
        # Runs do not overlap, so those that the new one overlaps are neighbours in the list.
        run = run.replacing(self._runs[first:last])
        self._runs[first:last], begins[first:last] = [run], [run.begin]

    def translate(self, address: int, nbytes: int) -> list[tuple[int, int]] | None:
        """(physical address, bytes) of the pieces of a range; None where a byte is not mapped."""
        pieces: list[tuple[int, int]] = []
        extent = self._latest
        while nbytes > 0:
            # Adjacent extents of a tensor may lie in different memories: one piece for each.
            if extent is None or not 0 <= address - extent.virtual < extent.nbytes:
                extent = self._at(address)
                if extent is None:
                    return None
                self._latest = extent
            offset = address - extent.virtual
            count = min(nbytes, extent.nbytes - offset)
            pieces.append((extent.physical + offset, count))
            address += count
            nbytes -= count
        return pieces

    def tensor_at(self, address: int, physical: int) -> tuple[str, int]:
        """The tensor with a byte at `physical` in a block that begins at virtual `address`, and the
        offset of that byte in the virtual range of the tensor.
        """
        bytes_at = (
            (extent.virtual + physical - extent.physical, extent.tensor)
            for extent in self._extents()
            if 0 <= physical - extent.physical < extent.nbytes
        )
        # Mappings of dead tensors remain until their virtual range is used again, so the byte may
        # have other virtual addresses.
        virtual, tensor = min(bytes_at, key=lambda each: (each[0] < address, each[0]))
        base = next(extent.virtual for extent in self._extents() if extent.tensor == tensor)
        return tensor, virtual - base

    def nearest(self, address: int) -> str:
        """The tensor below `address`, for the message of a page fault."""
        run = self.run_below(address)
        extent = None if run is None else run.below(address)
        if extent is None:
            return "no tensor is mapped below it"
        past = address - extent.end
        tensor = f"tensor {extent.tensor} at {extent.virtual:#x}+{extent.nbytes}"
        if past < 0:
            return f"it starts inside {tensor} and runs past its end"
        return f"{past} bytes past the end of {tensor}"

    def _extents(self) -> Iterator[Extent]:
        return (extent for run in self._runs for extent in run.extents)

    def _at(self, address: int) -> Extent | None:
        run = self.run_below(address)
        return None if run is None else run.at(address)

    def run_below(self, address: int) -> ExtentRun | None:
        """The last mapping that begins at or below `address`."""
        index = bisect_right(self._begins, address) - 1
        return None if index < 0 else self._runs[index]
