"""Group n, receives: from any direction in turn, from one direction in the order of posting."""

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from kernbench import tl, torch
from kernbench.oracle.checks.check import Check
from kernbench.oracle.checks.transfers.accesses import SLOT_BYTES, joined
from kernbench.oracle.theory.kernels.kernel_costs import KernelCosts
from kernbench.oracle.theory.topology_file import TopologyFile
from kernbench.simulation import Simulation, simulate
from runtime.core.dtypes import int8
from runtime.device.launches.launch import launch_on
from runtime.language.value import Value

MIDDLE, NEIGHBOURS = 4, {"E": 5, "N": 1, "S": 7, "W": 3}
"""Cubes of a mesh of 3 x 3."""
OPPOSITE = {"E": "W", "N": "S", "S": "N", "W": "E"}
MESSAGES = {"E": 1, "N": 3, "S": 2, "W": 3}
"""Messages from each direction; a ring has a slot for each."""
PACKET_BYTES = 256
SLOTS = 3
IDLE_ADDS, IDLE_ELEMENTS = 200, 1024
"""Commands that the receiver executes first, until all messages have arrived."""


def receive_order(file: TopologyFile) -> list[Check]:
    """All checks; each kernel runs on PE 0 of the middle cube and of its neighbours."""
    values = {"sip.cube_mesh": {"w": 3, "h": 3}, "pe.ipcq.overhead_ns": 1.0}
    file = file.with_values(values)
    return [*_in_turn(file), *_as_posted(file), *_by_slots(file)]


def in_turn(messages: Mapping[str, int]) -> Iterator[str]:
    """The directions of the messages, taken in turn, sorted, while they have any left."""
    for number in range(max(messages.values())):
        yield from (direction for direction in sorted(messages) if messages[direction] > number)


def _in_turn(file: TopologyFile) -> Iterator[Check]:
    expected = list(in_turn(MESSAGES))

    def receive() -> list[int]:
        return [_number(tl.recv(None, 1, int8)) for _ in expected]

    codes = {direction: code for code, direction in enumerate(sorted(MESSAGES), start=1)}
    sent = {direction: [codes[direction]] * MESSAGES[direction] for direction in MESSAGES}
    received = _received(file, sent, receive)
    wanted = [codes[direction] for direction in expected]
    yield _check("any", f"{len(wanted)} messages from four directions", "in turn", wanted, received)


def _as_posted(file: TopologyFile) -> Iterator[Check]:
    """Receives are posted before and after the arrival of messages."""
    values = [1, 2, 3, 4]

    def receive() -> list[int]:
        posted = [tl.recv_async("E", 1, int8) for _ in values]
        return [_number(each.wait()) for each in posted]

    received = _received(file, {"E": values}, receive, idles=False)
    yield _check("posted", "receives from one direction", "in order of posting", values, received)


def _by_slots(file: TopologyFile) -> Iterator[Check]:
    """A message of several slots, all of which have arrived: a command for each slot."""
    file = file.with_values({"packet_bytes": SLOT_BYTES})
    costs = KernelCosts(file, PACKET_BYTES)

    def kernel() -> None:
        if tl.program_id(1) == MIDDLE:
            _idle()
            tl.recv("E", SLOTS * SLOT_BYTES, int8)
        else:
            tl.send("W", Value((SLOTS * SLOT_BYTES,), int8, np.zeros(SLOTS * SLOT_BYTES, np.int8)))

    world = _simulated(file, kernel, [MIDDLE, NEIGHBOURS["E"]])
    copies = [record for _, record in world.of("pe_dma", "ipcq_recv")]
    yield Check(
        id="n.receive.slots",
        text=f"a message of {SLOTS} slots that have arrived: from the first copy to the last",
        formula="slots x copy + (slots - 1) x issue",
        expected=SLOTS * costs.copy_ps(SLOT_BYTES) + (SLOTS - 1) * costs.issue_ps,
        measured=max(each.end_ps for each in copies) - min(each.start_ps for each in copies),
        unit="ps",
    )


def _check(name: str, what: str, formula: str, expected: list[int], received: list[int]) -> Check:
    wrong = sum(one != other for one, other in zip(expected, received, strict=True))
    return Check(
        id=f"n.receive.{name}",
        text=f"{what}: those out of order",
        formula=formula,
        expected=0,
        measured=wrong,
        unit="messages",
    )


def _received(
    file: TopologyFile,
    sent: Mapping[str, list[int]],
    receive: Callable[[], list[int]],
    *,
    idles: bool = True,
) -> list[int]:
    """Numbers that the kernel of the middle cube receives from its neighbours, in order."""
    received: list[int] = []
    source_of = {NEIGHBOURS[direction]: direction for direction in sent}

    def kernel() -> None:
        cube = tl.program_id(1)
        if cube == MIDDLE:
            if idles:
                _idle()
            received.extend(receive())
        else:
            direction = source_of[cube]
            for number in sent[direction]:
                tl.send(OPPOSITE[direction], Value((1,), int8, np.full(1, number, np.int8)))

    _simulated(file, kernel, sorted({MIDDLE, *source_of}), data=True)
    return received


def _idle() -> None:
    """Compute until all messages have arrived."""
    value = tl.zeros((IDLE_ELEMENTS,), int8)
    for _ in range(IDLE_ADDS):
        value = value + value


def _simulated(
    file: TopologyFile, kernel: Callable[[], None], cubes: Sequence[int], *, data: bool = False
) -> Simulation:
    """A run of a kernel on PE 0 of some cubes."""

    def program(_rank: int) -> None:
        torch.distributed.init_process_group("ahbm")
        launch_on("receive", kernel, (), [], [(cube, 0) for cube in cubes])
        torch.ahbm.synchronize()

    return simulate(program, 1, topology=file.text, ccl=joined("tcm", PACKET_BYTES), data=data)


def _number(value: Value | None) -> int:
    assert value is not None
    assert value.data is not None
    return int(value.data[0])
