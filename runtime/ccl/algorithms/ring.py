"""Collectives over a ring of SIPs: every shard moves round a ring of its own, between PEs with
equal coordinates in their SIP.

Data moves from a rank to the next one; only all-to-all uses both directions. The docstring of a
kernel states the traffic on each link of a ring of p ranks, with n bytes at `shard`. No algorithm
sends fewer bytes in total. The schedules are `ring_scatter_step` and `ring_gather_step` of
`index_algebra`.
"""

from functools import partial
from typing import NamedTuple

from runtime.ccl.exchange import blocks, chunk_bounds
from runtime.ccl.group import Group
from runtime.ccl.pipelines.chain_pipeline import RankChain, pass_along
from runtime.ccl.pipelines.message_pipeline import RingQueues
from runtime.ccl.pipelines.ring_pipeline import RingPass, pass_round
from runtime.ccl.reduction import ReduceOp
from runtime.language import tl
from runtime.language.value import Pointer, Value


class RingRank(NamedTuple):
    """Rank, world size, the elements of a message that shares its links with others, and the
    queues.
    """

    rank: int
    size: int
    shared: int
    queues: RingQueues


DIRECTIONS = ("global_W", "global_E")
BEHIND, AHEAD = DIRECTIONS


FEW_PES = 3
"""The most PEs of a launch that fill a link with many small messages each."""


def arguments(group: Group, itemsize: int) -> tuple[RingRank, int]:
    """(position on the ring, elements of a message that is loaded, received and sent on as a
    whole): a message fits the receive ring, and all its copies fit the scratch.

    All-to-all has the most copies: two messages are loaded, and two are received in each step.

    A full ring covers bandwidth x delay of a link. Where several PEs share it, or messages follow
    each other in a chain, smaller messages overlap better: a quarter of a ring, at least 4 slots.
    """
    message_bytes = group.ring_bytes_within_scratch(2 + 2 * (group.world_size // 2))
    least_bytes = max(message_bytes // 4 // 64 * 64, 4 * group.algorithm.slot_size)
    shared_bytes = min(message_bytes, least_bytes)
    queues = queues_of(group, BEHIND, AHEAD)
    member = RingRank(group.rank, group.world_size, shared_bytes // itemsize, queues)
    return member, message_bytes // itemsize


def queues_of(group: Group, behind: str, ahead: str) -> RingQueues:
    """The queues of a ring of the ranks of a group, whose pass has the scratch for itself."""
    return RingQueues(
        behind=behind,
        ahead=ahead,
        n_slots=group.algorithm.n_slots,
        slot_bytes=group.algorithm.slot_size,
        room_bytes=group.ring_bytes_within_scratch(2),
    )


def queues_of_launch(queues: RingQueues) -> RingQueues:
    """The queues of a pass: several PEs share a link, so each needs fewer messages in flight."""
    pes = tl.num_programs(0) * tl.num_programs(1)
    return queues if pes <= FEW_PES else queues._replace(messages=4)


def all_reduce(shard: Pointer, numel: int, op: ReduceOp, ring: RingRank, _message: int) -> None:
    """Kernel: replace the `numel` elements at `shard` by the combined elements of all ranks.

    Reduce-scatter, then all-gather: 2(p-1)/p n bytes a link, in 2(p-1) steps of n/p bytes.
    """
    if ring.size == 1:
        return
    bounds = chunk_bounds(numel, ring.size)

    def chunk(index: int) -> Pointer:
        return shard + bounds[index][0]

    # A reduce-scatter and an all-gather of n/p bytes a step send 2(p-1)/p n bytes, the least of any
    # all-reduce (P. Patarasuk, X. Yuan, Bandwidth optimal all-reduce algorithms for clusters of
    # workstations, 2009).
    sizes = [stop - start for start, stop in bounds]
    pass_round(
        RingPass(ring.rank, sizes, chunk, chunk, shard.dtype, op, gathers=True),
        queues_of_launch(ring.queues),
    )


def reduce(
    shard: Pointer, numel: int, op: ReduceOp, root: int, ring: RingRank, _message: int
) -> None:
    """Kernel: replace the elements at `shard` of rank `root` by the combined elements of all ranks;
    other ranks keep theirs.

    A chain that ends at the root, message after message: n bytes on each of its p - 1 links, all of
    them busy at once.
    """
    chain = RankChain(
        position=(ring.rank - root - 1) % ring.size,
        size=ring.size,
        source=shard,
        target=shard if ring.rank == root else None,
        numel=numel,
        dtype=shard.dtype,
        op=op,
    )
    pass_along(chain, queues_of_launch(ring.queues))


def broadcast(shard: Pointer, numel: int, root: int, ring: RingRank, _message: int) -> None:
    """Kernel: replace the elements at `shard` by those of rank `root`.

    A chain that begins at the root, message after message: n bytes on each of its p - 1 links, all
    of them busy at once.
    """
    if ring.size == 1:
        return
    is_root = ring.rank == root
    chain = RankChain(
        position=(ring.rank - root) % ring.size,
        size=ring.size,
        source=shard if is_root else None,
        target=None if is_root else shard,
        numel=numel,
        dtype=shard.dtype,
    )
    pass_along(chain, queues_of_launch(ring.queues))


def all_gather(
    shard: Pointer, numel: int, outputs: tuple[Pointer, ...], ring: RingRank, message: int
) -> None:
    """Kernel: write the `numel` elements at `shard` of every rank r to `outputs[r]`.

    (p-1) n bytes a link, in p - 1 steps of n bytes.
    """
    if ring.size == 1:
        _copy(shard, outputs[0], numel, message)
        return
    # The pass begins with chunk i + 1 at position i.
    gather_pass = RingPass(
        position=(ring.rank - 1) % ring.size,
        sizes=[numel] * ring.size,
        source=partial(_always, shard),
        target=partial(_part, outputs),
        dtype=shard.dtype,
        op=None,
        gathers=True,
    )
    pass_round(gather_pass, queues_of_launch(ring.queues))


def all_gather_into_tensor(
    shard: Pointer, numel: int, outputs: tuple[Pointer, ...], ring: RingRank, message: int
) -> None:
    """Kernel: write the `numel` elements at `shard` of every rank r to `outputs[r]`, in one
    tensor.
    """
    all_gather(shard, numel, outputs, ring, message)


def reduce_scatter_tensor(
    inputs: tuple[Pointer, ...],
    numel: int,
    op: ReduceOp,
    output: Pointer,
    ring: RingRank,
    message: int,
) -> None:
    """Kernel: combine the `numel` elements at `inputs[r]` over all ranks, and write them to
    `output` of rank r.

    (p-1) `numel` elements a link, in p - 1 steps of `numel` elements.
    """
    if ring.size == 1:
        _copy(inputs[0], output, numel, message)
        return
    # The pass completes chunk i + 1 at position i.
    scatter_pass = RingPass(
        position=(ring.rank - 1) % ring.size,
        sizes=[numel] * ring.size,
        source=partial(_part, inputs),
        target=partial(_always, output),
        dtype=output.dtype,
        op=op,
        gathers=False,
    )
    pass_round(scatter_pass, queues_of_launch(ring.queues))


def all_to_all_single(
    inputs: tuple[Pointer, ...],
    numel: int,
    outputs: tuple[Pointer, ...],
    ring: RingRank,
    message: int,
) -> None:
    """Kernel: send the `numel` elements at `inputs[r]` to rank r; those from rank r go to
    `outputs[r]`.

    A part takes the shorter direction round the ring, from rank to rank. With n bytes in the parts
    of a rank, p/8 n bytes a link and direction, or (p*p - 1)/8p n for odd p.
    """
    rank, size, shared, _ = ring
    message = _message(message, shared)
    for start, count in blocks(numel, message):
        with tl.scratch():
            tl.store(outputs[rank] + start, tl.load(inputs[rank] + start, count))
        # Distances above p/2 are shorter in the other direction, which `before` covers.
        for distance in range(1, size // 2 + 1):
            after, before = (rank + distance) % size, (rank - distance) % size
            # At distance p/2 both directions are equally long: half of the elements takes each.
            middle = (count + 1) // 2
            # `forth` has the elements up to `stop`, `back` those from `begin` on: all of them in
            # both directions below distance p/2, one half each at p/2.
            stop, begin = (count, 0) if 2 * distance < size else (middle, middle)
            with tl.scratch():
                forth, back = (
                    tl.load(inputs[after] + start, stop),
                    tl.load(inputs[before] + start + begin, count - begin),
                )
                forth, back = _travel(forth, back, distance)
                tl.store(outputs[before] + start, forth)
                tl.store(outputs[after] + start + begin, back)


def gather(
    shard: Pointer,
    numel: int,
    outputs: tuple[Pointer, ...],
    root: int,
    ring: RingRank,
    message: int,
) -> None:
    """Kernel: write the `numel` elements at `shard` of every rank r to `outputs[r]` of rank `root`.

    Two chains end at the root, one from each side. The last link of the longer one carries
    floor(p/2) n bytes, that of the other one the parts of the other ranks.
    """
    rank, size = ring.rank, ring.size
    arms = _arms(root, size)
    if rank == root:
        # Straight from the rings to memory, from both sides at once, until the kernel ends.
        for start, count in blocks(numel, message):
            for direction, arm in arms:
                for source in arm:
                    tl.recv_async(direction, count, dst_addr=outputs[source] + start)
        _copy(shard, outputs[root], numel, message)
        return
    outwards, farther = _side_of(rank, arms)
    inwards = AHEAD if outwards == BEHIND else BEHIND
    for start, count in blocks(numel, message):
        with tl.scratch():
            tl.send(inwards, tl.load(shard + start, count))
        for _ in range(farther):
            with tl.scratch():
                tl.send(inwards, tl.recv(outwards, count, shard.dtype))


def scatter(
    inputs: tuple[Pointer, ...],
    numel: int,
    output: Pointer,
    root: int,
    ring: RingRank,
    message: int,
) -> None:
    """Kernel: write the `numel` elements at `inputs[r]` of rank `root` to `output` of rank r.

    Two chains begin at the root, one to each side: the bytes on the links are those of `gather`.
    """
    rank, size = ring.rank, ring.size
    arms = _arms(root, size)
    if rank == root:
        for start, count in blocks(numel, message):
            # The farthest ranks first, and both sides in turn: their parts travel meanwhile.
            for step in range(size // 2):
                for direction, arm in arms:
                    if step < len(arm):
                        with tl.scratch():
                            tl.send(direction, tl.load(inputs[arm[-1 - step]] + start, count))
        _copy(inputs[root], output, numel, message)
        return
    outwards, farther = _side_of(rank, arms)
    inwards = AHEAD if outwards == BEHIND else BEHIND
    for start, count in blocks(numel, message):
        for _ in range(farther):
            with tl.scratch():
                tl.send(outwards, tl.recv(inwards, count, output.dtype))
        with tl.scratch():
            tl.store(output + start, tl.recv(inwards, count, output.dtype))


def _part(parts: tuple[Pointer, ...], index: int) -> Pointer:
    return parts[index]


def _always(part: Pointer, _: int) -> Pointer:
    return part


def _message(message: int, shared: int) -> int:
    """The elements of a message, by the number of PEs that run this kernel."""
    pes = tl.num_programs(0) * tl.num_programs(1)
    return message if pes <= FEW_PES else min(message, shared)


def _arms(root: int, size: int) -> list[tuple[str, list[int]]]:
    """The direction from the root to each side, and the ranks there, the nearest one first."""
    behind = [(root - distance) % size for distance in range(1, size // 2 + 1)]
    ahead = [(root + distance) % size for distance in range(1, (size - 1) // 2 + 1)]
    return [(BEHIND, behind), (AHEAD, ahead)]


def _side_of(rank: int, arms: list[tuple[str, list[int]]]) -> tuple[str, int]:
    """The direction away from the root, and the number of ranks farther away from it."""
    for direction, arm in arms:
        if rank in arm:
            return direction, len(arm) - 1 - arm.index(rank)
    raise AssertionError("every rank but the root is on one side of it")


def _copy(source: Pointer, target: Pointer, numel: int, message: int) -> None:
    for start, count in blocks(numel, message):
        with tl.scratch():
            tl.store(target + start, tl.load(source + start, count))


def _travel(forth: Value, back: Value, distance: int) -> tuple[Value, Value]:
    """Send `forth` to the rank `distance` ahead and `back` to the rank `distance` behind; return
    what those two sent here.
    """
    for _ in range(distance):
        for direction, value in ((AHEAD, forth), (BEHIND, back)):
            if value.numel:
                tl.send(direction, value)
        forth, back = _received_from(BEHIND, forth), _received_from(AHEAD, back)
    return forth, back


def _received_from(direction: str, like: Value) -> Value:
    return tl.recv(direction, like.shape, like.dtype) if like.numel else like
