"""The plan of a product of which one operand is copied to every cube.

The *own* operand is dealt to PEs along its free axis, by the slices that hold it. Of the *gathered*
operand every cube has a copy, chunk by chunk. A chunk is cut into slots, one for each PE of a cube
(`gather_slots`). A cube reads the slots from where they are, or they come by relays
(`gather_relays`).

A cube cuts its block of the result into parts, one for each PE: parts of the gathered operand times
ranges of the own one. Neighbours that have one range multiply it with different parts.

The estimated time is the root of the sum of squares of several bounds, behind the time until the
first chunk is there: the steps of the GEMM engine, the bytes that pass a slice, the links between
cubes, or those of a cube, and the requests of a PE. A plan with one bound takes that bound; bounds
of one length delay each other.
"""

from functools import lru_cache
from itertools import pairwise, product
from math import gcd, hypot
from typing import NamedTuple

from runtime.device.products.gather_machine import GatherMachine, GatherOperand, copies_load
from runtime.device.products.gather_slots import GatherSlot, SlotCut, padded
from runtime.device.products.own_ranges import OwnRanges, cut_range
from runtime.device.products.product_plan import (
    ACCUMULATOR_BYTES,
    divided,
    share_of_channels,
)
from runtime.model.placement import Span

_ALIGNMENT_BYTES = 16384
"""Scratch that the alignment of the values may take."""
_COPIED_NS, _RELAYED_NS = (900.0, 250.0), (1300.0, 350.0)
"""The time until a chunk is copied, stored and loaded, and that of each further one, without their
bytes: measured on the default machine, and no more than a guide to the best of several plans.
"""
_FIRST_NS = 700.0
"""The time in which the only chunk of a product is copied, without its bytes."""
_STEP_NS = 5.0
"""The issue of the commands of a step."""
_CHUNKS = (128, 256, 512, 1024, 2048, 4096, 8192)
_STEPS = (2048, 1024, 512, 256, 128, 64)
"""The lengths of chunks and of steps of the depth that are compared."""
_SHORTEST_RING, _FEW_AHEAD, _LONGEST_RING = 2, 3, 8
"""The own panels in TCM: one is loaded while another one is multiplied. The first of few is there
sooner.
"""
_MOST_RANGES = 8
"""The ranges of the own operand that a PE computes one after the other."""


class GatherPlan(NamedTuple):
    """The plan of a product.

    `own` has the ranges of the own operand's free axis of each PE, by number. Of a batch they count
    through all matrices, and none lies in two. A PE multiplies them with part
    `number % len(parts)` of the gathered operand. `chunks` has the slots of each PE of a
    cube, which are cut along the depth if `by_depth` is set. `step` is the depth of an own panel,
    `ring` the number of them in TCM, `early` of those that are loaded before the first chunk.
    Copies of all chunks are kept if `is_kept` is set, for the own ranges after the first one.
    `time_ns` is the estimated time.
    """

    own: tuple[tuple[Span, ...], ...]
    parts: tuple[Span, ...]
    chunks: tuple[tuple[GatherSlot, ...], ...]
    by_depth: bool
    step: int
    ring: int
    early: int
    is_relayed: bool
    is_kept: bool
    time_ns: float


@lru_cache(maxsize=1024)
def gather_plan(
    machine: GatherMachine,
    own: GatherOperand,
    gathered: GatherOperand,
    depth: tuple[int, int],
    *,
    own_is_b: bool,
    batch: int = 1,
) -> GatherPlan | None:
    """The plan with the least estimated time; None if none fits the scratch. `depth` is that of the
    product, and the size of an element in bytes; `batch` is the number of equal products.
    """
    ranges = OwnRanges.of(machine, (own, gathered), depth, batch)
    if batch > 1:
        gathered = gathered.in_group(batch, machine.group(batch), machine.rates.pes)
    planner = _Planner(machine, ranges.own, gathered, *depth, own_is_b, batch, ranges)
    return planner.best()


class _GatherChoice(NamedTuple):
    """The parts of the gathered operand, the lengths of a chunk and of a step, the number of ranges
    of the own operand, the ring of own panels, and whether chunks come by relays.
    """

    parts: int
    chunk: int
    step: int
    ranges: int
    ring: int
    is_relayed: bool


class _PeLoad(NamedTuple):
    """The longest range of a PE in one matrix, the most ranges of a PE, and the most matrices of
    which the PEs of a cube have ranges.
    """

    longest: int
    pieces: int
    matrices: int


class _Planner(NamedTuple):
    """The product whose plan is sought."""

    machine: GatherMachine
    own: GatherOperand
    gathered: GatherOperand
    depth: int
    itemsize: int
    own_is_b: bool
    batch: int
    ranges: OwnRanges

    def best(self) -> GatherPlan | None:
        """The plan with the least estimated time."""
        divisions, most = self._parts(), self.ranges.most_parts
        dealt = {
            parts: self.ranges.dealt(parts)
            for parts in [each for each in divisions if each <= most] or divisions
        }
        loads = {parts: self._load(each) for parts, each in dealt.items()}
        choices = self._choices(loads)
        if not choices:
            return None
        (time_ns, *_), chosen = min(
            # Of equal times, the longest ring.
            ((*self._time_ns(choice, loads[choice.parts]), -choice.ring), choice)
            for choice in choices
        )
        parts = padded(divided(self.gathered.length, chosen.parts, self._unit()), chosen.parts)
        starts = [*range(0, self.depth, chosen.chunk), self.depth]
        return GatherPlan(
            own=tuple(
                tuple(each for span in pieces for each in cut_range(span, chosen.ranges))
                for pieces in dealt[chosen.parts]
            ),
            parts=parts,
            chunks=tuple(self._cut.slots(parts, chunk) for chunk in pairwise(starts)),
            by_depth=self._cut.by_depth,
            step=chosen.step,
            ring=chosen.ring,
            early=self._early(chosen, loads[chosen.parts].longest),
            is_relayed=chosen.is_relayed,
            is_kept=chosen.ranges > 1 or loads[chosen.parts].pieces > 1,
            time_ns=time_ns,
        )

    @property
    def _cut(self) -> SlotCut:
        unit = self.machine.rates.tile.k
        return SlotCut(self.machine.mesh.pes, unit, self.gathered.length, self.gathered.in_rows)

    def _unit(self) -> int:
        """The rows or columns of a tile, of which a part has whole ones where there are enough."""
        tile = self.machine.rates.tile
        unit = tile.m if self.own_is_b else tile.n
        return unit if self.gathered.length >= 2 * unit else 1

    def _load(self, dealt: list[tuple[Span, ...]]) -> _PeLoad:
        pes, length = self.machine.mesh.pes, self.own.length
        matrices = [
            {start // length for pieces in dealt[first : first + pes] for start, _ in pieces}
            for first in range(0, len(dealt), pes)
        ]
        return _PeLoad(
            longest=max(stop - start for pieces in dealt for start, stop in pieces),
            pieces=max(map(len, dealt)),
            matrices=max(map(len, matrices)),
        )

    def _parts(self) -> list[int]:
        """The numbers of parts of the gathered operand that are compared."""
        pes, tile = self.machine.mesh.pes, self.machine.rates.tile
        if self._cut.by_depth and self.gathered.in_rows:
            return [1]
        unit = tile.m if self.own_is_b else tile.n
        return [
            parts
            for parts in range(1, pes + 1)
            if pes % parts == 0 and self.gathered.length > (parts - 1) * unit
        ]

    def _choices(self, loads: dict[int, _PeLoad]) -> list[_GatherChoice]:
        """The choices that fit the scratch, with the load of a PE by parts."""
        unit, mesh = self.machine.rates.tile.k, self.machine.mesh
        whole, cubes = -(-self.depth // unit) * unit, mesh.width * mesh.height
        chunks = sorted({min(each, whole) for each in _CHUNKS})
        choices = list[_GatherChoice]()
        for parts, chunk, step in product(loads, chunks, _STEPS):
            if step >= 2 * whole:
                continue
            for ranges in range(1, _MOST_RANGES + 1):
                choice = _GatherChoice(parts, chunk, step, ranges, ring=0, is_relayed=False)
                choice = choice._replace(ring=self._ring(choice, loads[parts]))
                if choice.ring >= _SHORTEST_RING:
                    rings = {choice.ring, min(choice.ring, _FEW_AHEAD)}
                    # The barriers of relays are those of all PEs.
                    relayed = (False, True)[: cubes if self.batch == 1 else 1]
                    choices += [
                        choice._replace(ring=each, is_relayed=is_relayed)
                        for each, is_relayed in product(sorted(rings), relayed)
                    ]
                    break
        return choices

    def _ring(self, choice: _GatherChoice, load: _PeLoad) -> int:
        """The own panels for which the scratch has room."""
        mesh, chunk = self.machine.mesh, min(choice.chunk, self.depth)
        part = min(self.gathered.length, self._part(choice.parts) + self._unit())
        slot = self._cut.longest(part, choice.parts, chunk) * load.matrices
        own, is_whole = -(-load.longest // choice.ranges), chunk == self.depth
        panels = (1 if is_whole else 2) * part * chunk + (1 if is_whole else 3) * slot
        taken = panels * self.itemsize + own * part * (ACCUMULATOR_BYTES + self.itemsize)
        room = mesh.scratch_bytes - _ALIGNMENT_BYTES - taken
        panel = own * min(choice.step, self.depth) * self.itemsize
        return min(room // panel, _LONGEST_RING) if panel else 0

    def _early(self, choice: _GatherChoice, longest: int) -> int:
        """The own panels that are loaded while the first chunk is copied. If that is the only one,
        they are few: it waits behind them in the slices.
        """
        if choice.chunk < self.depth:
            return choice.ring
        panel = -(-longest // choice.ranges) * min(choice.step, self.depth) * self.itemsize
        return max(1, int(_FIRST_NS * self.machine.rates.slice_gbs / panel))

    def _part(self, parts: int) -> int:
        return -(-self.gathered.length // parts)

    def _time_ns(self, choice: _GatherChoice, load: _PeLoad) -> tuple[float, int]:
        """The estimated time, and the number of chunks, of which fewer are better."""
        (mesh, rates, *_), part = self.machine, self._part(choice.parts)
        longest, pieces, matrices = load
        rows, columns = (part, longest) if self.own_is_b else (longest, part)
        tile, row_bytes = rates.tile, self.depth * self.itemsize
        steps_ns = -(-rows // tile.m) * -(-columns // tile.n) * -(-self.depth // tile.k)
        steps_ns *= rates.step_ns * pieces
        copied = matrices * self.gathered.length * row_bytes / mesh.pes
        if self.own.in_rows:
            own_bytes = longest * row_bytes * pieces
            # An engine that waits leaves all panels in flight, else it frees one after the other.
            waits = steps_ns * rates.slice_gbs < own_bytes
            own_bytes /= self._own_channels(choice.step * (choice.ring - 1 if waits else 1))
            own_bytes *= self._bursts(choice.step)
        else:
            # Of each row of the depth a few columns: a burst at least.
            own_bytes = self.depth * max(longest * self.itemsize, self.machine.burst_bytes) * pieces
        ranges = choice.ranges * pieces
        slice_ns = (own_bytes + part * ranges * row_bytes + copied) / rates.slice_gbs
        # Two of eight PEs share a corner of the cube, to which a link of the router mesh leads, and
        # the own ranges of more neighbours lie in several corners.
        elsewhere = max(0.0, 1 - mesh.pes / 4 / choice.parts)
        corner = 0.75 * part * ranges + elsewhere * longest * pieces
        corner *= mesh.pes / 4 * row_bytes
        chunks = -(-self.depth // choice.chunk)
        steps = ranges * max(chunks, -(-self.depth // choice.step))
        far, near = matrices * chunks * self._slot_requests(-(-self.depth // chunks)), steps
        near += chunks * ranges * mesh.pes // (1 if self._cut.by_depth else choice.parts)
        requests_ns = self.machine.far_ns(far) + self.machine.near_ns(near)
        links_ns = self._links_ns(choice)
        corner_ns = corner / self.machine.router_gbs
        # What is busy most of the time delays the others: they share routers and slices.
        busy_ns = hypot(steps_ns, slice_ns, links_ns, corner_ns, requests_ns)
        first_ns, chunk_ns = _RELAYED_NS if choice.is_relayed else _COPIED_NS
        if self.ranges.group_pes == mesh.pes:
            # The slices of one cube, which has all of a matrix, load, store and load a chunk.
            first_ns += (2 * copied + part * row_bytes * pieces) / chunks / rates.slice_gbs
        if self.own.in_rows:
            # Own panels from other cubes come beside the copies of the first chunk.
            links_ns -= self._panels_ns(choice)
        first_ns += max(links_ns, requests_ns) / chunks + steps_ns / max(chunks, 4)
        if not self.own.in_rows:
            # Copies wait for the requests of own panels, one for each slice.
            first_ns += self.machine.far_ns(ranges * self.own.pieces(self.depth, longest))
        # The first own panels come side by side, and those of a range behind the range before.
        ahead = min(1.0, choice.ring * choice.step / self.depth)
        ahead_ns = ahead * own_bytes / ranges / rates.slice_gbs
        first_ns = max(first_ns, ahead_ns) + (ranges - 1) * ahead_ns
        width = self.own.length if self.own_is_b else self.gathered.length
        stored_ns = ranges * self.machine.stored_ns(
            rows, width * self.itemsize, self._result() * self.batch
        )
        extra_ns = stored_ns + chunk_ns * chunks + _STEP_NS * steps
        return busy_ns + first_ns + extra_ns, chunks

    def _own_channels(self, depth: int) -> float:
        """The part of a slice's channels on which own panels of a depth lie."""
        row_bytes = min(depth, self.depth) * self.itemsize
        pitch_bytes = self.own.pitch * self.itemsize
        return share_of_channels(row_bytes, pitch_bytes, self.machine.round_bytes)

    def _bursts(self, depth: int) -> float:
        """The bytes of the bursts in which an own panel of a depth lies beside its own bytes: rows
        that begin anywhere in a burst have parts of two more, but the whole depth has no gaps.
        """
        burst_bytes, pitch_bytes = self.machine.burst_bytes, self.own.pitch * self.itemsize
        if depth >= self.own.pitch:
            return 1.0
        return 1 + (burst_bytes - gcd(burst_bytes, pitch_bytes)) / (depth * self.itemsize)

    def _links_ns(self, choice: _GatherChoice) -> float:
        """The time of the busiest link between cubes: copies, own panels, results."""
        mesh, group = self.machine.mesh, self.machine.group(self.batch)
        copied = self.gathered.length * self.depth * self.itemsize
        chunk = self.depth if self.gathered.in_rows else choice.chunk
        load = copies_load(group, self.gathered, (self.depth, chunk), is_relayed=choice.is_relayed)
        # Half of what lies elsewhere crosses the middle of the mesh, or of the cubes of a matrix.
        spread, own = self._result(), self.own.length * self.depth * self.itemsize
        across = 0 if group.width * group.height == 1 else spread / min(group.width, group.height)
        if self.batch > 1 and not self.own.is_on(self.ranges.group_pes):
            across = max(across, own * self.batch / min(mesh.width, mesh.height))
        if not self.own.in_rows and self.machine.cuts_matrices(self.batch):
            # A quarter of the products of a row and a column of a matrix in two cubes.
            across += own / 2
        return (load * copied + across / 2) / self.machine.link_gbs + self._panels_ns(choice)

    def _panels_ns(self, choice: _GatherChoice) -> float:
        """The time of a link in the middle for own panels that lie elsewhere. Neighbours that have
        one range load it each for itself.
        """
        group = self.machine.group(self.batch)
        if self.ranges.are_held or group.width * group.height == 1:
            return 0.0
        loaded = self.own.length * self.depth * self.itemsize * choice.parts
        return loaded / min(group.width, group.height) / 2 / self.machine.link_gbs

    def _result(self) -> int:
        """The bytes of the result."""
        return self.own.length * self.gathered.length * self.itemsize

    def _slot_requests(self, chunk: int) -> int:
        """The pieces in memory of the slot of a PE: a request for each slice that holds some."""
        pes = self.machine.mesh.pes
        if not self._cut.by_depth:
            return self.gathered.pieces(-(-self.gathered.length // pes), chunk)
        if self.gathered.in_rows:
            return self.gathered.pieces(self.gathered.length, -(-chunk // pes))
        return self.gathered.pieces(-(-chunk // pes), self.gathered.length)
