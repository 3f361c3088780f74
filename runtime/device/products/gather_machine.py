"""The operands and the machine of a product of which one operand is copied to cubes."""

from bisect import bisect_left
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from runtime.device.products.cube_mesh import (
    CubeMesh,
    LinkShares,
    all_gather_load,
    relayed_gather_load,
)
from runtime.device.products.product_plan import PeRates
from runtime.model.placement import Span

_FAR_NS, _NEAR_NS = 350.0, 130.0
"""The times of a request to another cube and in the cube."""
_LEAST_SHARE_BYTES = 4096
"""The bytes of a tensor that a slice holds at least."""
_LEAST_HOLDERS = 7 / 8
"""The part of the PEs that hold some of an operand which is multiplied where it lies."""


class GatherOperand(NamedTuple):
    """An operand: its free axis in elements, the pitch of its memory, whether the free axis is that
    of the rows in memory; the end in memory of each share in elements, and the PE that holds it,
    numbered through all cubes. Of a batch the shares are those of all matrices, which are
    `distance` elements apart.
    """

    length: int
    pitch: int
    in_rows: bool
    ends: tuple[int, ...]
    holders: tuple[int, ...]
    distance: int = 0

    def is_on(self, pes: int) -> bool:
        """Whether nearly each of `pes` PEs holds a share."""
        holders = self.holders
        return holders == tuple(range(len(holders))) and len(holders) >= _LEAST_HOLDERS * pes

    def is_stacked(self, count: int) -> bool:
        """Whether each matrix of a batch of `count` has a part of the memory to itself."""
        return self.distance * count >= self.ends[-1]

    def first_of(self, count: int) -> "GatherOperand":
        """The first matrix of a batch of `count`."""
        end = self.distance if self.is_stacked(count) else self.ends[-1]
        number = bisect_left(self.ends, end)
        return self._replace(ends=(*self.ends[:number], end), holders=self.holders[: number + 1])

    def in_group(self, count: int, mesh: CubeMesh, pes: int) -> "GatherOperand":
        """A matrix of a batch of `count`, in equal shares of the PEs of `mesh`, which hold no other
        one; or on one of these PEs, if the batch lies on few of all `pes` PEs, or its matrices
        mixed.
        """
        elements, group = max(1, self.ends[-1] // count), mesh.width * mesh.height * mesh.pes
        if not (self.is_on(pes) and self.is_stacked(count)):
            return self._replace(ends=(elements,), holders=(0,))
        ends = tuple(elements * (pe + 1) // group for pe in range(group))
        return self._replace(ends=ends, holders=tuple(range(group)))

    def rows_of_cubes(self, count: int, cube: int, pes: int, near: float = 0.0) -> tuple[Span, ...]:
        """The rows, counted through all matrices of a batch of `count`, that each cube with `cube`
        of all `pes` PEs holds; up to `near` of them at an end of a matrix are with its other ones
        in the next cube. None of them if rows are those of the depth, or if cubes hold no ranges.
        """
        if not (self.in_rows and self.is_on(pes) and self.is_stacked(count)):
            return ()
        length, ends = self.length, [0]
        for first in range(0, pes, cube):
            end = self.ends[min(first + cube, len(self.ends)) - 1]
            number, rest = divmod(end, self.distance)
            row = number * length + min(length, round(rest / self.pitch))
            matrix = round(row / length) * length
            ends.append(matrix if abs(row - matrix) <= near else row)
        return tuple(pairwise([*ends[:-1], length * count]))

    def shares(self, pes: int, span: Span | None = None) -> tuple[tuple[int, float], ...]:
        """The share that each cube holds, of `pes` PEs, of a span of the memory or of all of it."""
        first, stop = span or (0, self.ends[-1])
        shares = dict[int, float]()
        for (last, end), holder in zip(pairwise([0, *self.ends]), self.holders, strict=True):
            part = (min(end, stop) - max(last, first)) / (stop - first)
            if part > 0:
                shares[holder // pes] = shares.get(holder // pes, 0.0) + part
        return tuple(sorted(shares.items()))

    def pieces(self, rows: int, columns: int) -> int:
        """The pieces in memory of a block: a request for each slice that holds some."""
        share = max(1, self.ends[0])
        if columns > share:
            return rows * -(-columns // share)
        return max(1, -(-rows * self.pitch // share))


class GatherMachine(NamedTuple):
    """The cubes, the rates of a PE, the bandwidths of a link between cubes and between the routers
    of a cube in GB/s, the requests in flight of a PE, and the bytes of an access of the memory and
    of a round over its channels.
    """

    mesh: CubeMesh
    rates: PeRates
    link_gbs: float
    router_gbs: float
    requests: int
    burst_bytes: int
    round_bytes: int

    def far_ns(self, count: int) -> float:
        """The time of a number of requests of a PE to other cubes."""
        return count * _FAR_NS / self.requests

    def near_ns(self, count: int) -> float:
        """The time of a number of requests of a PE in its cube."""
        return count * _NEAR_NS / self.requests

    def stored_ns(self, rows: int, row_bytes: int, nbytes: int) -> float:
        """The time in which a PE stores a part of `rows` rows of a result, whose rows have
        `row_bytes`: a request for each slice that holds some.
        """
        share = max(_LEAST_SHARE_BYTES, nbytes // self.rates.pes)
        return self.far_ns(-(-rows // max(1, share // row_bytes)))

    def cuts_matrices(self, count: int) -> bool:
        """Whether some matrices of a batch begin in one cube and end in the next."""
        cubes = self.mesh.width * self.mesh.height
        return bool(count % cubes and cubes % count)

    def group(self, count: int) -> CubeMesh:
        """The cubes that multiply one matrix of a batch of `count`."""
        mesh = self.mesh
        cubes = max(1, mesh.width * mesh.height // count)
        width = min(cubes, mesh.width)
        return mesh._replace(width=width, height=-(-cubes // width))


@lru_cache(maxsize=1024)
def copies_load(
    mesh: CubeMesh, gathered: GatherOperand, depth: tuple[int, int], *, is_relayed: bool
) -> float:
    """The part of a gathered operand that passes the busiest links, one chunk after the other:
    chunks of an operand with the depth in memory rows lie in few cubes each. `depth` is that of the
    product, and that of a chunk.
    """
    whole, chunk = depth
    gather_load = relayed_gather_load if is_relayed else all_gather_load
    load = 0.0
    for first in range(0, whole, chunk):
        stop = min(first + chunk, whole)
        span = None
        if chunk < whole:
            span = first * gathered.ends[-1] // whole, stop * gathered.ends[-1] // whole
        load += gather_load(mesh, gathered.shares(mesh.pes, span)) * (stop - first) / whole
    return load


def batch_copies_load(
    mesh: CubeMesh, gathered: GatherOperand, depth: int, matrices: tuple[Span, ...]
) -> float:
    """The number of matrices of a batch that pass the busiest link, if each cube reads those with
    the numbers [first, last) of its `matrices`.
    """
    loads = LinkShares(mesh, {})
    elements = gathered.pitch * (gathered.length if gathered.in_rows else depth)
    for cube, (first, last) in enumerate(matrices):
        for number in range(first, last):
            start = number * gathered.distance
            span = start, min(start + elements, gathered.ends[-1])
            for home, share in gathered.shares(mesh.pes, span):
                loads.add(home, cube, share)
    return loads.busiest()
