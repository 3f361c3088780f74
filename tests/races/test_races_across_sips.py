"""An order that leads through other SIPs counts, and what only seems to be one does not."""

from collections.abc import Callable

import pytest

from kernbench.explain.check.findings import Findings
from runtime import DPPolicy, tl, torch
from runtime.language.value import Pointer
from tests.support.checked import findings
from tests.support.joined import ccl_text

COUNT = 16
TWO = DPPolicy(pe="row_wise", num_cubes=1, num_pes=2)
JOINED = ccl_text("tests.support.joined.exchange_0_0_0_1")
"""PEs 0 and 1 of each SIP exchange with those of the other SIPs."""
Launches = Callable[[int, int], None]


def token() -> tl.Value:
    return tl.full(1, 1.0, tl.float32)


def store_and_load(x: Pointer, y: Pointer, source: str) -> None:
    """PE 0 stores and sends to the next SIP, PE 1 loads when it has received from `source`."""
    if tl.program_id(0) == 0:
        tl.store(x, tl.full(COUNT, 1.0, tl.float32))
        tl.send("global_E", token())
    else:
        tl.recv(source, 1, tl.float32)
        tl.store(y, tl.load(x, COUNT))


def receive(x: Pointer) -> None:
    if tl.program_id(0) == 0:
        tl.recv("global_W", 1, tl.float32)


def pass_on(x: Pointer) -> None:
    if tl.program_id(0) == 0:
        tl.send("global_E", token())


def answer(x: Pointer) -> None:
    if tl.program_id(0) == 1:
        tl.send("global_E", token())


def through_a_barrier(rank: int, right: int) -> None:
    """SIP 1 receives with PE 0, and answers with PE 1 behind a barrier, or before it."""

    def relay(x: Pointer) -> None:
        me = tl.program_id(0)
        if me == 0:
            tl.recv("global_W", 1, tl.float32)
        if me == 1 and not right:
            tl.send("global_W", token())
        tl.barrier()
        if me == 1 and right:
            tl.send("global_W", token())

    x, y = (torch.zeros(2 * COUNT, dp=TWO) for _ in range(2))
    if rank == 0:
        torch.launch("store_and_load", store_and_load, x, y, "global_E")
    else:
        torch.launch("relay", relay, x)


def through_launches_of_three(rank: int, right: int) -> None:
    """SIP 1 passes the token on in a second launch, SIP 2 answers in a launch behind that of its
    receive, or before it.
    """
    x, y = (torch.zeros(2 * COUNT, dp=TWO) for _ in range(2))
    if rank == 0:
        torch.launch("store_and_load", store_and_load, x, y, "global_W")
    elif rank == 1:
        torch.launch("receive", receive, x)
        torch.launch("pass_on", pass_on, x)
    else:
        for kernel in (receive, answer) if right else (answer, receive):
            torch.launch(kernel.__name__, kernel, x)


def halo_in_two_buffers(rank: int, right: int) -> None:
    """Each PE loads the halo that the other one has received from the other SIP: behind a barrier,
    and the next halo goes to a second buffer, or to the same one.
    """

    def step(halo: Pointer, y: Pointer) -> None:
        me = tl.program_id(0)
        for number in range(3):
            tl.send("global_E", token())
            both = halo + number % 2 * 2 if right else halo
            tl.recv("global_W", 1, tl.float32, dst_addr=both + me)
            tl.barrier()
            tl.store(y + me * COUNT + number, tl.load(both + (1 - me), 1))

    halo, y = (torch.zeros(2 * COUNT, dp=TWO) for _ in range(2))
    torch.launch("step", step, halo, y)


def through_the_end_of_a_launch(rank: int, right: int) -> None:
    """Each PE of SIP 0 loads what the other one has stored, of which the other PE of SIP 1 was
    informed in the launch before that of its answer, or behind it.
    """

    def exchange(x: Pointer, y: Pointer) -> None:
        me = tl.program_id(0)
        tl.store(x + me * COUNT, tl.full(COUNT, 1.0, tl.float32))
        tl.send("global_E", token())
        tl.recv("global_E", 1, tl.float32)
        tl.store(y + me * COUNT, tl.load(x + (1 - me) * COUNT, COUNT))

    def receive_on_both(x: Pointer) -> None:
        tl.recv("global_W", 1, tl.float32)

    def answer_from_both(x: Pointer) -> None:
        tl.send("global_W", token())

    x, y = (torch.zeros(2 * COUNT, dp=TWO) for _ in range(2))
    if rank == 0:
        torch.launch("exchange", exchange, x, y)
    else:
        both = [receive_on_both, answer_from_both]
        for kernel in both if right else reversed(both):
            torch.launch(kernel.__name__, kernel, x)


@pytest.mark.parametrize(
    ("launches", "sips"),
    [
        (through_a_barrier, 2),
        (through_launches_of_three, 3),
        (through_the_end_of_a_launch, 2),
        (halo_in_two_buffers, 2),
    ],
)
@pytest.mark.parametrize("data", [True, False], ids=["data", "no data"])
def test_an_order_through_other_sips_counts(launches: Launches, sips: int, data: bool) -> None:
    def of(right: int) -> Findings:
        def program(rank: int) -> None:
            torch.distributed.init_process_group("ahbm")
            launches(rank, right)
            torch.ahbm.synchronize()

        return findings(program, sips, ccl=JOINED, data=data)

    wrong, right = of(0), of(1)
    assert [(each.first.operation, each.second.operation) for each in wrong.races] in (
        [("store", "load")],
        [("load", "store")],
        [("load", "recv")],
        [("recv", "load")],
    )
    assert right.reports == 0
