"""Whole chips give one result for every partition into LPs and every delay of frames."""

from collections.abc import Callable
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime import DPPolicy, tl, torch
from runtime.core.requests import PeDmaMsg
from runtime.device.rank.rank_state import running_rank
from runtime.wire.reports import SipReport
from tests.support.lps import reports_of
from tests.support.topologies import variant_text

dist = torch.distributed
SIPS = 4
LONE_CUBE = {"sip__cube_mesh": {"w": 1, "h": 1}, "cube__pe_layout__pe_per_corner": 1}
RING = variant_text(**LONE_CUBE)
TORUS = variant_text(**LONE_CUBE, system__sips__topology="torus_2d", system__sips__count=4)
SWITCH = variant_text(**LONE_CUBE, system__sips__fabric="switch")
DEALS = [
    ((0, 1, 2, 3),),
    ((0,), (1, 2, 3)),
    ((0, 2), (1, 3)),
    ((3, 0), (1,), (2,)),
    ((0,), (1,), (2,), (3,)),
]
MESH = variant_text(
    **LONE_CUBE, system__sips__topology="mesh_2d_no_wrap", system__sips__w=3, system__sips__h=2
)
OF_SIX = [
    ((0, 1, 2), (3, 4, 5)),
    ((0, 2, 4), (1, 3, 5)),
    ((5, 0), (1, 2, 3), (4,)),
    ((0, 3), (1, 4), (2, 5)),
    ((0,), (1,), (2,), (3,), (4,), (5,)),
]
ALGORITHMS = ["ring", "intercube", "recursive_doubling", "tree"]
TALKS: dict[str, tuple[str, str, Callable[[int, int], int]]] = {
    "ring": ("global_E", "global_W", lambda place, steps: (place - steps) % SIPS),
    "recursive_doubling": (
        "global_bit_1",
        "global_bit_1",
        lambda place, steps: place ^ 2 * (steps % 2),
    ),
}
"""Neighbours by algorithm: directions of send and receive, and the origin of the elements after n
steps, as places in the order of the algorithm.
"""


def collectives(numel: int, algorithm: str) -> Callable[[int], None]:
    def triple(x: tl.Pointer, n: int) -> None:
        tl.store(x, tl.load(x, n) * 3)

    def program(rank: int) -> None:
        dist.init_process_group("ahbm", algorithm=algorithm)
        x = torch.full((numel,), float(rank + 1), dp=DPPolicy(num_pes=1))
        dist.all_reduce(x)
        if rank % 2:
            torch.launch("triple", triple, x, numel)
        dist.barrier()
        assert (x.numpy() == 10 * (3 if rank % 2 else 1)).all()

    return program


def transfers(targets: list[int]) -> Callable[[int], None]:
    """PE 0 of every rank accesses HBM slices of other SIPs: SIPs with idle PEs send answers."""

    def program(rank: int) -> None:
        state = running_rank()
        for number, target in enumerate(targets):
            address = state.addresses.pe_hbm_addr(
                (rank + target) % SIPS, 0, number % 4, 4096 * rank
            )
            operation = "read" if number % 2 else "write"
            state.device.wait(
                state.device.submit(
                    [PeDmaMsg(0, 0, operation, address, 300 + number)], "a transfer"
                )
            )

    return program


def conversations(steps: list[tuple[bool, bool, bool]], algorithm: str) -> Callable[[int], None]:
    """Every kernel, in each step, exchanges messages while it multiplies, adds, or is idle.

    The peers are the neighbours in a ring, or the opposite rank behind a third SIP.

    A step defines whether the receive accepts any direction, whether a product is in flight, and
    whether the kernel waits for the product first.
    """
    towards, back, origin = TALKS[algorithm]

    def kernel(x: tl.Pointer) -> None:
        for any_direction, multiplies, first in steps:
            with tl.scratch():
                block = tl.load(x, (40, 40))
                received = tl.recv_async(None if any_direction else back, (40, 40), tl.float32)
                product = tl.composite("gemm", block, tl.ref(x, (40, 40))) if multiplies else None
                chain = tl.fused_async(lambda block: tl.exp(block - tl.max(block)), block)
                tl.send(towards, block + 1)
                # The message is read, and its credit is returned, while the vector engine is busy
                # for 1.5 us.
                tl.zeros(200_000, tl.int8)
                if product is not None and first:
                    tl.wait(product)
                arrived = tl.wait(received)
                assert arrived is not None
                tl.wait(chain)
                if product is not None:
                    tl.wait(product)
                tl.dot(block, tl.ref(x, (40, 40)))
                tl.store(x, arrived)

    def program(rank: int) -> None:
        dist.init_process_group("ahbm", algorithm=algorithm)
        x = torch.full((40, 40), float(rank), dp=DPPolicy(num_cubes=1, num_pes=1))
        torch.launch("converse", kernel, x)
        order = dist.get_order()
        first = order[origin(order.index(rank), len(steps))]
        assert (x.numpy() == first + len(steps)).all()

    return program


def errands(trips: list[tuple[int, int, int, bool]]) -> Callable[[int], None]:
    """Transfers between any two ranks, all in flight together.

    Each is (source, target, elements, whether the source computes before).
    """

    def add_one(x: tl.Pointer, n: int) -> None:
        tl.store(x, tl.load(x, n) + 1)

    def program(rank: int) -> None:
        dist.init_process_group("ahbm", algorithm="ring")
        carried = [
            torch.full((numel,), float(number), dp=DPPolicy(num_pes=1))
            for number, (_, _, numel, _) in enumerate(trips)
        ]
        transfers: list[dist.Work] = []
        for x, (source, target, numel, works) in zip(carried, trips, strict=True):
            if works and rank == source:
                torch.launch("add one", add_one, x, numel)
            if rank == source:
                transfers.append(dist.isend(x, target))
            if rank == target:
                transfers.append(dist.irecv(x, source))
        assert all(transfer.wait() for transfer in transfers)
        for number, (x, (source, target, _, works)) in enumerate(zip(carried, trips, strict=True)):
            assert (x.numpy() == number + (works and rank in (source, target))).all()

    return program


def posted(trips: list[tuple[int, int, int, int]], seed: int) -> Callable[[int], None]:
    """Messages between any two ranks: (source, target, tag, elements). Every rank posts its ends in
    an order of its own, beside a collective, and waits for them in another order.
    """

    def program(rank: int) -> None:
        dist.init_process_group("ahbm", algorithm="ring")
        draw = Random(100 * seed + rank)
        # Messages of one pair and tag match in the order of posting, so those keep theirs.
        queues: dict[tuple[bool, int, int], list[int]] = {}
        for number, (source, target, tag, _) in enumerate(trips):
            if rank in (source, target):
                peer = target if rank == source else source
                queues.setdefault((rank == source, peer, tag), []).append(number)
        tensors = {
            number: torch.full((trips[number][3],), float(number + 1 if sends else 0))
            for (sends, _, _), numbers in queues.items()
            for number in numbers
        }
        works: list[dist.Work] = []
        while queues:
            sends, peer, tag = key = draw.choice(list(queues))
            number = queues[key].pop(0)
            post = dist.isend if sends else dist.irecv
            works.append(post(tensors[number], peer, tag=tag))
            if not queues[key]:
                del queues[key]
            if draw.random() < 0.3:
                torch.zeros(3)
        reduced = torch.ones(500)
        dist.all_reduce(reduced, async_op=True)
        draw.shuffle(works)
        assert all(work.wait() for work in works)
        for number, tensor in tensors.items():
            assert (tensor.numpy() == number + 1).all()
        assert (reduced.numpy() == SIPS).all()

    return program


def essence(reports: list[SipReport]) -> list[tuple[object, ...]]:
    assert [(report.finished, report.broken_law) for report in reports] == [(True, "")] * len(
        reports
    )
    return [(report.digest, report.time_ps, sorted(report.counters.items())) for report in reports]


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(st.data())
def test_collectives_do_not_depend_on_the_partition_or_on_delays(data: st.DataObject) -> None:
    topology = data.draw(st.sampled_from([RING, TORUS, SWITCH]), label="topology")
    program = collectives(
        data.draw(st.sampled_from([1, 5, 3000])), data.draw(st.sampled_from(ALGORITHMS))
    )
    deal, seed = data.draw(st.sampled_from(DEALS)), data.draw(st.integers(0, 1 << 30))
    alone = essence(reports_of(program, DEALS[0], topology, seed=0))
    assert essence(reports_of(program, deal, topology, seed=seed)) == alone


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(st.data())
def test_promises_of_kernels_that_multiply_and_receive_are_kept_on_any_partition(
    data: st.DataObject,
) -> None:
    step = st.tuples(st.booleans(), st.booleans(), st.booleans())
    algorithm = data.draw(st.sampled_from(list(TALKS)), label="algorithm")
    program = conversations(data.draw(st.lists(step, min_size=1, max_size=4)), algorithm)
    topology = data.draw(st.sampled_from([RING, SWITCH]), label="topology")
    deal, seed = data.draw(st.sampled_from(DEALS)), data.draw(st.integers(0, 1 << 30))
    alone = essence(reports_of(program, DEALS[0], topology, seed=0))
    assert essence(reports_of(program, deal, topology, seed=seed)) == alone


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(st.data())
def test_dma_between_sips_does_not_depend_on_the_partition_or_on_delays(
    data: st.DataObject,
) -> None:
    topology = data.draw(st.sampled_from([RING, TORUS, SWITCH]), label="topology")
    program = transfers(data.draw(st.lists(st.integers(0, 3), min_size=1, max_size=4)))
    deal, seed = data.draw(st.sampled_from(DEALS)), data.draw(st.integers(0, 1 << 30))
    alone = essence(reports_of(program, DEALS[0], topology, seed=0, remote_dma=True))
    assert essence(reports_of(program, deal, topology, seed=seed, remote_dma=True)) == alone


@pytest.mark.slow
@settings(max_examples=20, deadline=None)
@given(st.data())
def test_forwarded_messages_do_not_depend_on_the_partition_or_on_delays(
    data: st.DataObject,
) -> None:
    topology = data.draw(st.sampled_from([RING, MESH]), label="topology")
    rank = st.integers(0, 5)
    trip = st.tuples(rank, rank, st.sampled_from([1, 700]), st.booleans()).filter(
        lambda drawn: drawn[0] != drawn[1]
    )
    program = errands(data.draw(st.lists(trip, min_size=1, max_size=6)))
    deal, seed = data.draw(st.sampled_from(OF_SIX)), data.draw(st.integers(0, 1 << 30))
    alone = essence(reports_of(program, (tuple(range(6)),), topology, seed=0))
    assert essence(reports_of(program, deal, topology, seed=seed)) == alone


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(st.data())
def test_posted_messages_arrive_in_any_order_of_posting_with_one_result(
    data: st.DataObject,
) -> None:
    topology = data.draw(st.sampled_from([RING, TORUS, SWITCH]), label="topology")
    rank = st.integers(0, SIPS - 1)
    trip = st.tuples(
        rank, rank, st.integers(0, 2), st.sampled_from([0, 1, 1024, 5000, 12_000])
    ).filter(lambda drawn: drawn[0] != drawn[1])
    program = posted(
        data.draw(st.lists(trip, min_size=1, max_size=10)), data.draw(st.integers(0, 1 << 16))
    )
    deal, seed = data.draw(st.sampled_from(DEALS)), data.draw(st.integers(0, 1 << 30))
    alone = essence(reports_of(program, DEALS[0], topology, seed=0))
    assert essence(reports_of(program, deal, topology, seed=seed)) == alone


def test_dma_between_sips_has_to_be_declared() -> None:
    with pytest.raises(Exception, match="was not declared to have DMA between SIPs"):
        reports_of(transfers([1]), DEALS[0], RING, seed=0)
