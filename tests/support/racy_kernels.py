"""Kernels of four PEs of a cube with a race, and their right twins.

Each takes `right`, which is 1 for the twin. The kernels of a pair differ in one call, or in the
place of one.
"""

from collections.abc import Callable

from runtime import tl
from runtime.language.value import Pointer

PES, PART, SLOTS, SLOT_BYTES = 4, 64, 4, 128
"""PEs, the elements of each in a tensor, and the slots of a ring."""
SIZE = PES * PART
Kernel = Callable[[Pointer, Pointer, int], None]
KERNELS: dict[str, Kernel] = {}
"""Kernels by name, which is what is missing or wrong."""


def racy(kernel: Kernel) -> Kernel:
    """Add a kernel."""
    KERNELS[kernel.__name__] = kernel
    return kernel


def me() -> int:
    return tl.program_id(0)


def token() -> tl.Value:
    return tl.full(1, 1.0, tl.float32)


@racy
def barrier_missing(x: Pointer, y: Pointer, right: int) -> None:
    tl.store(x + me() * PART, tl.full(PART, me(), tl.float32))
    if right:
        tl.barrier()
    tl.store(y + me() * PART, tl.load(x + (me() + 1) % PES * PART, PART))


@racy
def overwritten_too_early(x: Pointer, y: Pointer, right: int) -> None:
    block = tl.load(x + (me() + 1) % PES * PART, PART)
    if right:
        tl.barrier()
    tl.store(x + me() * PART, block + 1)


@racy
def second_barrier_missing(x: Pointer, y: Pointer, right: int) -> None:
    for _ in range(3):
        tl.store(x + me() * PART, tl.full(PART, me(), tl.float32))
        tl.barrier()
        tl.store(y + me() * PART, tl.load(x + (me() + 1) % PES * PART, PART))
        if right:
            tl.barrier()


@racy
def halo_in_place(x: Pointer, y: Pointer, right: int) -> None:
    first = max(me() * PART - 1, 0)
    block = tl.load(x + first, (me() + 1) * PART - first)
    if right:
        tl.barrier()
    tl.store(x + me() * PART, block[-PART:] + 1)


@racy
def halo_of_a_neighbour(x: Pointer, y: Pointer, right: int) -> None:
    tl.store(x + me() * PART, tl.full(PART, me(), tl.float32))
    # The twin stays inside its own part.
    start = me() * PART if right or not me() else me() * PART - 1
    tl.store(y + me() * PART, tl.load(x + start, PART))


@racy
def reduction(x: Pointer, y: Pointer, right: int) -> None:
    tl.store(x + me() * PART, tl.full(PART, me(), tl.float32))
    if right:
        tl.barrier()
    if me() == 0:
        tl.store(y, tl.sum(tl.load(x, SIZE)))


@racy
def broadcast_from_memory(x: Pointer, y: Pointer, right: int) -> None:
    if me() == 2:
        tl.store(x, tl.full(PART, 1.0, tl.float32))
    if right:
        tl.barrier()
    tl.store(y + me() * PART, tl.load(x, PART))


@racy
def gather(x: Pointer, y: Pointer, right: int) -> None:
    tl.store(x + me() * PART, tl.full(PART, me(), tl.float32))
    if right:
        tl.barrier()
    rows = tl.gather(x, (1, 9, 15), (16,))
    tl.store(y + me() * PART, rows.reshape(48))


@racy
def strided_columns(x: Pointer, y: Pointer, right: int) -> None:
    # Four columns of a matrix of 16 x 16 for each PE: the twin reads its own, the other the next.
    tl.store(x + me() * 4, tl.full((16, 4), me(), tl.float32), strides=(16, 1))
    first = me() * 4 if right else (me() * 4 + 1) % 13
    tl.store(y + me() * PART, tl.load(x + first, (16, 4), strides=(16, 1)).reshape(PART))


@racy
def strided_every_other_element(x: Pointer, y: Pointer, right: int) -> None:
    if me() == 0:
        tl.store(x, tl.full((32, 1), 1.0, tl.float32), strides=(2, 1))
    if me() == 1:
        # The elements between those of PE 0, or these.
        tl.store(y, tl.load(x + right, (32, 1), strides=(2, 1)).reshape(32))


@racy
def token_before_store(x: Pointer, y: Pointer, right: int) -> None:
    if me() == 0:
        store = tl.store_async(x, tl.full(PART, 1.0, tl.float32))
        if right:
            tl.wait(store)
        tl.send("E", token())
        tl.wait(store)
    if me() == 1:
        tl.recv("W", 1, tl.float32)
        tl.store(y, tl.load(x, PART))


@racy
def async_store_and_computation(x: Pointer, y: Pointer, right: int) -> None:
    if me() == 0:
        block = tl.full(PART, 1.0, tl.float32)
        store = tl.store_async(x, block)
        done = tl.exp(block)
        if right:
            tl.wait(store)
        tl.send("E", done)
    if me() == 1:
        tl.recv("W", PART, tl.float32)
        tl.store(y, tl.load(x, PART))


@racy
def wait_for_another_store(x: Pointer, y: Pointer, right: int) -> None:
    if me() == 0:
        first = tl.store_async(x, tl.full(PART, 1.0, tl.float32))
        second = tl.store_async(x + PART, tl.full(PART, 2.0, tl.float32))
        tl.wait(second if right else first)
        tl.send("E", token())
    if me() == 1:
        tl.recv("W", 1, tl.float32)
        tl.store(y, tl.load(x + PART, PART))


@racy
def product_in_flight(x: Pointer, y: Pointer, right: int) -> None:
    if me() == 0:
        a = tl.full((8, 8), 1.0, tl.float32)
        product = tl.composite("gemm", a, a, tl.ref(x, (8, 8)))
        if right:
            tl.wait(product)
        tl.send("E", token())
    if me() == 1:
        tl.recv("W", 1, tl.float32)
        tl.store(y, tl.load(x, PART))


@racy
def operand_of_a_product_in_flight(x: Pointer, y: Pointer, right: int) -> None:
    if me() == 0:
        a = tl.full((8, 8), 1.0, tl.float32)
        product = tl.composite("gemm", tl.ref(x, (8, 8)), a)
        if right:
            tl.wait(product)
        tl.send("E", token())
        tl.wait(product)
    if me() == 1:
        tl.recv("W", 1, tl.float32)
        tl.store(x, tl.full(PART, 1.0, tl.float32))


@racy
def load_in_flight(x: Pointer, y: Pointer, right: int) -> None:
    if me() == 0:
        load = tl.load_async(x, PART)
        if right:
            tl.wait(load)
        tl.send("E", token())
        tl.store(y, tl.wait(load))
    if me() == 1:
        tl.recv("W", 1, tl.float32)
        tl.store(x, tl.full(PART, 1.0, tl.float32))


@racy
def gather_in_flight(x: Pointer, y: Pointer, right: int) -> None:
    if me() == 0:
        rows = tl.gather_async(x, (0, 2), (16,))
        if right:
            tl.wait(rows)
        tl.send("E", token())
        tl.store(y, tl.wait(rows))
    if me() == 1:
        tl.recv("W", 1, tl.float32)
        tl.store(x + 40, tl.full(4, 1.0, tl.float32))


@racy
def receive_missing(x: Pointer, y: Pointer, right: int) -> None:
    if me() == 0:
        tl.store(x, tl.full(PART, 1.0, tl.float32))
        tl.send("E", token())
    if me() == 1:
        if right:
            tl.recv("W", 1, tl.float32)
        tl.store(y, tl.load(x, PART))
        if not right:
            tl.recv("W", 1, tl.float32)


@racy
def receive_in_flight(x: Pointer, y: Pointer, right: int) -> None:
    if me() == 0:
        tl.store(x, tl.full(PART, 1.0, tl.float32))
        tl.send("E", token())
    if me() == 1:
        come = tl.recv_async("W", 1, tl.float32)
        if right:
            tl.wait(come)
        tl.store(y, tl.load(x, PART))
        tl.wait(come)


@racy
def receive_to_memory_in_flight(x: Pointer, y: Pointer, right: int) -> None:
    if me() == 0:
        tl.send("E", tl.full(PART, 1.0, tl.float32))
    if me() == 1:
        come = tl.recv_async("W", PART, tl.float32, dst_addr=x, dst_space="hbm")
        if right:
            tl.wait(come)
        tl.send("E", token())
    if me() == 2:
        tl.recv("W", 1, tl.float32)
        tl.store(y, tl.load(x, PART))


@racy
def double_buffer(x: Pointer, y: Pointer, right: int) -> None:
    for step in range(4):
        buffer = x + step % 2 * PART
        if me() == 0:
            if right and step >= 2:
                tl.recv("E", 1, tl.float32)
            tl.store(buffer, tl.full(PART, step, tl.float32))
            tl.send("E", token())
        if me() == 1:
            tl.recv("W", 1, tl.float32)
            block = tl.load(buffer, PART)
            if right and step < 2:
                tl.send("W", token())
            tl.store(y + step * PART, block)


@racy
def credits_too_few(x: Pointer, y: Pointer, right: int) -> None:
    # The receiver loads before its first receive. The last message waits for a credit of that only
    # if it is one more than the ring has slots.
    messages = SLOTS + right
    if me() == 0:
        for _ in range(messages):
            tl.send("E", token())
        tl.store(x, tl.full(PART, 1.0, tl.float32))
    if me() == 1:
        tl.store(y, tl.load(x, PART))
        for _ in range(messages):
            tl.recv("W", 1, tl.float32)


@racy
def credits_of_sends_in_flight(x: Pointer, y: Pointer, right: int) -> None:
    # A send in flight ends with the credit of its slot.
    if me() == 0:
        sends = [tl.send_async("E", token()) for _ in range(SLOTS + 1)]
        if right:
            tl.wait(sends[-1])
        tl.store(x, tl.full(PART, 1.0, tl.float32))
    if me() == 1:
        tl.store(y, tl.load(x, PART))
        for _ in range(SLOTS + 1):
            tl.recv("W", 1, tl.float32)


@racy
def credit_of_the_first_slot_of_two(x: Pointer, y: Pointer, right: int) -> None:
    # Slots return one by one: the credit of the first slot comes before the message has ended.
    count, tokens = SLOT_BYTES // 2, SLOTS - 1 + right
    if me() == 0:
        tl.send("E", tl.full(count, 1.0, tl.float32))
        for _ in range(tokens):
            tl.send("E", token())
        tl.store(y, tl.load(x, PART))
    if me() == 1:
        tl.recv("W", count, tl.float32, dst_addr=x)
        for _ in range(tokens):
            tl.recv("W", 1, tl.float32)


@racy
def chain_through_a_third_pe(x: Pointer, y: Pointer, right: int) -> None:
    if me() == 0:
        tl.store(x, tl.full(PART, 1.0, tl.float32))
        tl.send("E", token())
    if me() == 1:
        if right:
            tl.recv("W", 1, tl.float32)
        tl.send("E", token())
        if not right:
            tl.recv("W", 1, tl.float32)
    if me() == 2:
        tl.recv("W", 1, tl.float32)
        tl.store(y, tl.load(x, PART))


@racy
def token_of_another_peer(x: Pointer, y: Pointer, right: int) -> None:
    if me() == 0:
        tl.store(x, tl.full(PART, 1.0, tl.float32))
        tl.send("E", token())
    if me() == 2:
        tl.send("W", token())
    if me() == 1:
        tl.recv("W" if right else "E", 1, tl.float32)
        tl.store(y, tl.load(x, PART))
        tl.recv("E" if right else "W", 1, tl.float32)


@racy
def sent_before_overwrite(x: Pointer, y: Pointer, right: int) -> None:
    if me() == 0:
        tl.store(x, tl.full(PART, 1.0, tl.float32))
        tl.send("E", token())
        if right:
            tl.recv("E", 1, tl.float32)
        tl.store(x, tl.full(PART, 2.0, tl.float32))
    if me() == 1:
        tl.recv("W", 1, tl.float32)
        tl.store(y, tl.load(x, PART))
        if right:
            tl.send("W", token())


@racy
def slots_released_too_early(x: Pointer, y: Pointer, right: int) -> None:
    # A value in its slot returns its credit with the release.
    if me() == 0:
        for _ in range(SLOTS + 1):
            tl.send("E", token())
        tl.store(x, tl.full(PART, 1.0, tl.float32))
    if me() == 1:
        first = tl.wait(
            tl.recv_async("W", dst_addr=tl.empty(1, tl.float32), dst_space="tcm", in_place=True)
        )
        if not right:
            tl.release(first)
        tl.store(y, tl.load(x, PART))
        if right:
            tl.release(first)
        for _ in range(SLOTS):
            tl.recv("W", 1, tl.float32)
