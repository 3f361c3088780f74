"""Compares the memories at the end of the run with those of the replay.

First byte by byte; a buffer with a differing byte is then compared element by element in the type
in which it was written, within the tolerance that rounding justifies.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from coordinator.verify.elements import EPS, LEAST_NORMAL, NUMPY, Array, result_of
from coordinator.verify.memory import NO_WRITER, PAGE_BYTES, PagedArray
from coordinator.verify.replay import EXACT, Replay, ReplayedOperation
from coordinator.verify.verdict import MemoryStatistics
from runtime.core.coordinates import PeCoordinates
from runtime.core.errors import PhysAddrError
from runtime.core.trace import NO_PE
from runtime.model.addresses import AddressMap, PhysAddr

TOLERANCE = 4.0
"""An element may deviate by this multiple of its error bound."""
MEMORIES = frozenset({"hbm", "sram", "tcm"})
"""Memories that are compared at the end. Registers are not: each of their records is checked."""


@dataclass
class _Tally:
    buffers: set[int] = field(default_factory=set[int])
    elements: int = 0
    worst_eps: float = 0.0


class Comparison:
    """Compares `contents`, the (physical address, bytes) of all that is not zero, with a replay."""

    def __init__(
        self, replay: Replay, contents: Iterable[tuple[int, bytes]], addresses: AddressMap
    ) -> None:
        self._replayed, self._operations = replay.memory, replay.operations
        self._addresses = addresses
        self._simulated = PagedArray(np.uint8, 0)
        for address, data in contents:
            self._simulated.write(address, np.frombuffer(data, np.uint8), len(data))
        self._tallies: defaultdict[str, _Tally] = defaultdict(_Tally)
        self._suspects: dict[int, int] = {}
        self._differences: list[tuple[int, int, str]] = []
        # Pages of either side: a byte that only the simulation has is a difference as well.
        for number in sorted({*self._replayed.writers.pages, *self._simulated.pages}):
            self._compare_page(number)
        for writer, address in self._suspects.items():
            self._compare_buffer(self._operations[writer], address)

    @property
    def statistics(self) -> tuple[MemoryStatistics, ...]:
        """The statistics of each kind of memory."""
        return tuple(
            MemoryStatistics(kind, len(tally.buffers), tally.elements, tally.worst_eps)
            for kind, tally in sorted(self._tallies.items())
        )

    @property
    def differences(self) -> list[str]:
        """A line for each buffer beyond its tolerance, in the order in which they were written."""
        return [text for _, _, text in sorted(self._differences)]

    def _compare_page(self, number: int) -> None:
        base = number * PAGE_BYTES
        try:
            kind = PhysAddr.decode(base, self._addresses).resource
        except PhysAddrError as error:
            self._differences.append((0, base, str(error)))
            return
        if kind not in MEMORIES:
            return
        writers = self._replayed.writers.page(number)
        self._count(kind, writers)
        # Most pages are equal to the bit; only buffers with a differing byte pay for the comparison
        # by elements.
        unequal = np.flatnonzero(self._replayed.bytes.page(number) != self._simulated.page(number))
        for writer, first in zip(*np.unique(writers[unequal], return_index=True), strict=True):
            address = base + int(unequal[first])
            if writer == NO_WRITER:
                text = f"{self._location(address)}: the simulation has data, no record wrote it"
                self._differences.append((0, address, text))
            else:
                self._suspects.setdefault(int(writer), address)

    def _count(self, kind: str, writers: Array) -> None:
        tally = self._tallies[kind]
        for writer, count in zip(*np.unique(writers, return_counts=True), strict=True):
            if writer != NO_WRITER:
                operation = self._operations[int(writer)]
                tally.buffers.add(operation.number)
                tally.elements += int(count) // NUMPY[operation.record.dtype].itemsize

    def _compare_buffer(self, operation: ReplayedOperation, address: int) -> None:
        """Compare the elements of an operation's result, in the type in which it wrote them.

        An element that a later operation overwrote in part has no value of this type any more; its
        remaining bytes must be equal.
        """
        block, dtype = result_of(operation.record), NUMPY[operation.elements]
        # Bytes that a later operation overwrote are compared as part of that operation.
        own = self._replayed.writers.read_block(block) == operation.number
        right, actual = self._replayed.bytes.read_block(block), self._simulated.read_block(block)
        wrong = _any(own & (right != actual), dtype.itemsize)
        allowed = np.zeros(len(wrong))
        if operation.error_bound != EXACT:
            deviation, of_element, of_largest = _deviation(
                right.view(dtype), actual.view(dtype), operation.elements
            )
            allowed = TOLERANCE * (
                operation.error_bound.of_element * of_element
                + operation.error_bound.of_largest * of_largest
            )
            # Rounding is a property of values: an element that was overwritten in part gets no
            # tolerance.
            whole = ~_any(~own, dtype.itemsize)
            # The reported deviation uses the same reference as the tolerance.
            scale = of_largest if operation.error_bound.of_largest else of_element
            # Before the elements within the tolerance are removed: the statistics show the greatest
            # deviation of all.
            self._keep_worst(operation, address, deviation[whole], scale[whole])
            wrong &= ~(whole & (deviation <= allowed))
        if wrong.any():
            index = int(np.flatnonzero(wrong)[0])
            was = float(actual.view(dtype)[index])
            replayed = float(right.view(dtype)[index])
            text = (
                f"{self._location(address)}, written by {operation}: "
                f"{int(wrong.sum()):,} elements of {len(wrong):,} differ; element {index} is "
                f"{was:g}, replayed {replayed:g}, may differ by {allowed[index]:g}"
            )
            self._differences.append((operation.record.end_ps, address, text))

    def _keep_worst(
        self, operation: ReplayedOperation, address: int, deviation: Array, scale: Array
    ) -> None:
        eps = EPS.get(operation.elements)
        if eps and len(deviation):
            tally = self._tallies[PhysAddr.decode(address, self._addresses).resource]
            tally.worst_eps = max(tally.worst_eps, float((deviation / scale).max()) / eps)

    def _location(self, address: int) -> str:
        decoded = PhysAddr.decode(address, self._addresses)
        owner = (
            f"sip {decoded.sip} cube {decoded.cube}"
            if decoded.pe == NO_PE
            else str(PeCoordinates(decoded.sip, decoded.cube, decoded.pe))
        )
        return f"{owner}: {decoded.resource} at {decoded.offset:#x} ({address:#x})"


def _any(of_bytes: Array, itemsize: int) -> Array:
    """Whether any byte of an element is set in the mask `of_bytes`, by element."""
    return np.any(of_bytes.reshape(-1, itemsize), axis=1, keepdims=True)[:, 0]


def _deviation(right: Array, actual: Array, dtype: str) -> tuple[Array, Array, Array]:
    """The distance of the elements, the magnitude of each right element, and of the largest one.

    NaN and infinity match themselves only. Magnitudes are at least the least normal number: below
    it the spacing of floating-point numbers is constant, so a relative error has no meaning.
    """
    with np.errstate(all="ignore"):
        a, b = right.astype(np.float64), actual.astype(np.float64)
        apart = np.where(
            (a == b) | (np.isnan(a) & np.isnan(b)),
            0.0,
            np.nan_to_num(np.abs(a - b), nan=np.inf, posinf=np.inf),
        )
    magnitude = np.maximum(np.abs(np.where(np.isfinite(a), a, 0.0)), LEAST_NORMAL.get(dtype, 1.0))
    return apart, magnitude, np.full(len(a), magnitude.max(initial=0.0))
