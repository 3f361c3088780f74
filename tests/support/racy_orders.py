"""Kernels whose order is that of atomic operations, of stages of a pipeline, or of operations in
flight over a barrier, with a race, and their right twins. See racy_kernels.py.
"""

from runtime import tl
from runtime.language.value import Pointer
from tests.support.racy_kernels import PART, PES, SIZE, SLOTS, Kernel, me, token

ORDERS: dict[str, Kernel] = {}


def racy_order(kernel: Kernel) -> Kernel:
    """Add a kernel."""
    ORDERS[kernel.__name__] = kernel
    return kernel


def ones(count: int = PART) -> tl.Value:
    return tl.full(count, 1.0, tl.float32)


def come_late() -> None:
    """Compute for longer than another PE takes for its first calls."""
    late = ones(4096)
    for _ in range(8):
        late = tl.exp(late)


@racy_order
def released_by_a_relaxed_operation(x: Pointer, y: Pointer, right: int) -> None:
    flag = y + SIZE - 1
    if me() == 0:
        tl.store(x, ones())
        tl.atomic("add", flag, token(), old=False, sem="release" if right else "relaxed")
    if me() == 1:
        come_late()
        tl.atomic("add", flag, token() * 0, sem="acquire")
        tl.store(y, tl.load(x, PART))


@racy_order
def flag_of_another_element(x: Pointer, y: Pointer, right: int) -> None:
    if me() == 0:
        tl.store(x, ones())
        tl.atomic("add", y + SIZE - 1, token(), old=False)
    if me() == 1:
        come_late()
        tl.atomic("add", y + SIZE - (1 if right else 2), token() * 0)
        tl.store(y, tl.load(x, PART))


@racy_order
def acquisition_in_flight(x: Pointer, y: Pointer, right: int) -> None:
    # What an atomic operation acquires is before its wait, and not before what follows the call.
    flag = y + SIZE - 1
    if me() == 0:
        tl.store(x, ones())
        tl.atomic("add", flag, token(), old=False, sem="release")
    if me() == 1:
        come_late()
        served = tl.atomic_async("add", flag, token() * 0, sem="acquire")
        if right:
            tl.wait(served)
        tl.store(y, tl.load(x, PART))
        tl.wait(served)


@racy_order
def one_of_three_stages_in_flight(x: Pointer, y: Pointer, right: int) -> None:
    # The credit of stage 1 returns while its load is in flight.
    for step in range(6):
        stage = x + step % 3 * PART
        if me() == 0:
            if step >= 3:
                tl.recv("E", 1, tl.float32)
            tl.store(stage, tl.full(PART, step, tl.float32))
            tl.send("E", token())
        if me() == 1:
            tl.recv("W", 1, tl.float32)
            load = tl.load_async(stage, PART)
            if right or step % 3 != 1:
                tl.wait(load)
            if step < 3:
                tl.send("W", token())
            tl.store(y, tl.wait(load))


@racy_order
def slot_of_a_value_that_is_passed_on(x: Pointer, y: Pointer, right: int) -> None:
    # The slot is free behind the release, which waits for the send in the background.
    if me() == 0:
        for _ in range(SLOTS + 1):
            tl.send("E", token())
        tl.store(x, ones())
    if me() == 1:
        target = tl.empty(1, tl.float32)
        first = tl.wait(tl.recv_async("W", dst_addr=target, dst_space="tcm", in_place=True))
        assert first is not None
        passed = tl.send_async("E", first)
        if right:
            tl.store(y, tl.load(x, PART))
        tl.wait(passed)
        tl.release(first)
        if not right:
            tl.store(y, tl.load(x, PART))
        for _ in range(SLOTS):
            tl.recv("W", 1, tl.float32)
    if me() == 2:
        tl.recv("W", 1, tl.float32)


@racy_order
def token_of_an_earlier_iteration(x: Pointer, y: Pointer, right: int) -> None:
    # A token too many in front of the loop: each receive takes that of the iteration before.
    for step in range(3):
        part = step * 16
        if me() == 0:
            if not step and not right:
                tl.send("E", token())
            tl.store(x + part, ones(16))
            if right or step < 2:
                tl.send("E", token())
        if me() == 1:
            tl.recv("W", 1, tl.float32)
            tl.store(y + part, tl.load(x + part, 16))


@racy_order
def load_in_flight_over_a_barrier(x: Pointer, y: Pointer, right: int) -> None:
    load = tl.load_async(x + (me() + 1) % PES * PART, PART)
    if right:
        tl.wait(load)
    tl.barrier()
    tl.store(x + me() * PART, ones())
    tl.store(y + me() * PART, tl.wait(load))


@racy_order
def transposed_in_place(x: Pointer, y: Pointer, right: int) -> None:
    # A matrix of 16 x 16: each PE loads four rows, and stores them as four columns.
    rows = tl.load(x + me() * PART, (4, 16))
    if right:
        tl.barrier()
    tl.store(x + me() * 4, tl.trans(rows), strides=(16, 1))


@racy_order
def pitches_without_a_common_divisor(x: Pointer, y: Pointer, right: int) -> None:
    # Three elements at a pitch of 7 and single ones at a pitch of 11 share element 23 alone.
    if me() == 0:
        tl.store(x, tl.full((5, 3), 1.0, tl.float32), strides=(7, 1))
    if me() == 1:
        first = 13 if right else 12
        tl.store(y, tl.load(x + first, (4, 1), strides=(11, 1)).reshape(4))
