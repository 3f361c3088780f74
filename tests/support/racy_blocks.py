"""More kernels with races, and their right twins, of blocks that overlap in part, products, and
messages whose order is easily overestimated. See racy_kernels.py.
"""

from runtime import tl
from runtime.language.context import PendingResult
from runtime.language.value import Pointer
from tests.support.racy_kernels import PART, PES, SLOTS, Kernel, me, token

BLOCKS: dict[str, Kernel] = {}


def racy_block(kernel: Kernel) -> Kernel:
    """Add a kernel."""
    BLOCKS[kernel.__name__] = kernel
    return kernel


@racy_block
def corner_of_a_block(x: Pointer, y: Pointer, right: int) -> None:
    # Blocks of 8 x 8 in a matrix of 16 columns, which share one element or none.
    first = 8 if right else 7 * 16 + 7
    if me() == 0:
        tl.store(x, tl.full((8, 8), 1.0, tl.float32), strides=(16, 1))
    if me() == 1:
        tl.store(y, tl.load(x + first, (8, 8), strides=(16, 1)).reshape(PART))


@racy_block
def column_and_row(x: Pointer, y: Pointer, right: int) -> None:
    if me() == 0:
        tl.store(x + 3, tl.full((16, 1), 1.0, tl.float32), strides=(16, 1))
    if me() == 1:
        tl.store(y, tl.load(x + 5 * 16 + (4 if right else 0), 8))


@racy_block
def element_of_two_types(x: Pointer, y: Pointer, right: int) -> None:
    # A byte inside of an element of four bytes, or the first one behind it.
    if me() == 0:
        tl.store(x, tl.full(1, 1.0, tl.float32))
    if me() == 1:
        own = Pointer(x.address + (4 if right else 3), tl.int8)
        tl.store(y, tl.load(own, 1).to(tl.float32))


@racy_block
def columns_beside_a_product(x: Pointer, y: Pointer, right: int) -> None:
    # The product reads the first eight columns.
    if me() == 0:
        a = tl.full((16, 16), 1.0, tl.float32)
        tl.wait(tl.composite("gemm", a, tl.ref(x, (16, 8), (16, 1)), tl.ref(y, (16, 8))))
    if me() == 1:
        tl.store(x + (8 if right else 7), tl.full((16, 1), 1.0, tl.float32), strides=(16, 1))


@racy_block
def transposed_operand_overwritten(x: Pointer, y: Pointer, right: int) -> None:
    if me() == 0:
        a = tl.full((8, 8), 1.0, tl.float32)
        tl.wait(tl.composite("gemm", a, tl.ref(x, (8, 8)).mT, tl.ref(y, (8, 8))))
        if right:
            tl.send("E", token())
    if me() == 1:
        if right:
            tl.recv("W", 1, tl.float32)
        tl.store(x + 63, token())


@racy_block
def another_product(x: Pointer, y: Pointer, right: int) -> None:
    if me() == 0:
        a = tl.full((8, 8), 1.0, tl.float32)
        first = tl.composite("gemm", a, a, tl.ref(x + PART, (8, 8)))
        second = tl.composite("gemm", a, a, tl.ref(x, (8, 8)))
        tl.wait(second if right else first)
        tl.send("E", token())
    if me() == 1:
        tl.recv("W", 1, tl.float32)
        tl.store(y, tl.load(x, PART))


@racy_block
def store_of_a_chain(x: Pointer, y: Pointer, right: int) -> None:
    if me() == 0:
        chain = tl.fused_async(tl.exp, tl.full(PART, 1.0, tl.float32))
        store = tl.store_async(x, tl.wait(chain))
        if right:
            tl.wait(store)
        tl.send("E", token())
    if me() == 1:
        tl.recv("W", 1, tl.float32)
        tl.store(y, tl.load(x, PART))


@racy_block
def loaded_before_the_token(x: Pointer, y: Pointer, right: int) -> None:
    if me() == 0:
        tl.store(x, tl.full(PART, 1.0, tl.float32))
        tl.send("E", token())
    if me() == 1:
        if right:
            tl.recv("W", 1, tl.float32)
        load = tl.load_async(x, PART)
        if not right:
            tl.recv("W", 1, tl.float32)
        tl.store(y, tl.wait(load))


@racy_block
def one_reader_not_awaited(x: Pointer, y: Pointer, right: int) -> None:
    if me() == 1:
        tl.store(x, tl.full(PART, 1.0, tl.float32))
        for side in "EW":
            tl.send(side, token())
        for side in "WE" if right else "W":
            tl.recv(side, 1, tl.float32)
        tl.store(x, tl.full(PART, 2.0, tl.float32))
    if me() in (0, 2):
        side = "E" if me() == 0 else "W"
        tl.recv(side, 1, tl.float32)
        tl.store(y + me() * PART, tl.load(x, PART))
        if right or me() == 0:
            tl.send(side, token())


@racy_block
def token_from_any_direction(x: Pointer, y: Pointer, right: int) -> None:
    if me() in (0, 2):
        if me() == 0:
            tl.store(x, tl.full(PART, 1.0, tl.float32))
        tl.send("E" if me() == 0 else "W", token())
    if me() == 1:
        for _ in range(1 + right):
            tl.recv(None, 1, tl.float32)
        tl.store(y, tl.load(x, PART))
        if not right:
            tl.recv(None, 1, tl.float32)


@racy_block
def credits_of_long_messages(x: Pointer, y: Pointer, right: int) -> None:
    # Three of the four slots of the ring: the second message waits for slots of the first.
    count = 3 * 1024
    if me() == 0:
        for _ in range(1 + right):
            tl.send("E", tl.full(count, 1.0, tl.float32))
        tl.store(x, tl.full(PART, 1.0, tl.float32))
    if me() == 1:
        tl.store(y, tl.load(x, PART))
        for _ in range(1 + right):
            tl.recv("W", count, tl.float32)


@racy_block
def credit_of_a_posted_receive(x: Pointer, y: Pointer, right: int) -> None:
    if me() == 0:
        for _ in range(SLOTS + 1):
            tl.send("E", token())
        tl.store(x, tl.full(PART, 1.0, tl.float32))
    if me() == 1:
        # A receive that is posted takes its message while the program loads.
        if right:
            tl.store(y, tl.load(x, PART))
        posted = tl.recv_async("W", 1, tl.float32)
        if not right:
            tl.store(y, tl.load(x, PART))
        tl.wait(posted)
        for _ in range(SLOTS):
            tl.recv("W", 1, tl.float32)


@racy_block
def send_in_flight_without_credit(x: Pointer, y: Pointer, right: int) -> None:
    if me() == 0:
        sends = [tl.send_async("E", token()) for _ in range(SLOTS + 1)]
        if right:
            tl.wait(sends[-1])
        tl.store(x, tl.full(PART, 1.0, tl.float32))
    if me() == 1:
        tl.store(y, tl.load(x, PART))
        for _ in range(SLOTS + 1):
            tl.recv("W", 1, tl.float32)


@racy_block
def ring_of_parts(x: Pointer, y: Pointer, right: int) -> None:
    # An all-gather through a ring: behind the last message all parts have been loaded, and behind
    # the last but one those of all PEs but one.
    block = tl.load(x + me() * PART, PART)
    for _ in range(PES - 2 + right):
        tl.send("E", block)
        block = tl.recv("W", PART, tl.float32)
    tl.store(x + (me() + 1) % PES * PART, block)


@racy_block
def row_of_a_gather_at_a_pitch(x: Pointer, y: Pointer, right: int) -> None:
    # Rows of 8 elements at a pitch of 32, one of them twice: the twin stores between two rows.
    if me() == 0:
        tl.store(x + 2 * 32 + (8 if right else 7), tl.full(8, 1.0, tl.float32))
    if me() == 1:
        rows = tl.gather(x, (0, 2, 2, 0), (8,), strides=(32, 1))
        tl.store(y, rows.reshape(32))


@racy_block
def scratch_that_ends_too_late(x: Pointer, y: Pointer, right: int) -> None:
    # The end of its scratch waits for a store, without a tl.wait.
    if me() == 0:
        with tl.scratch():
            tl.store_async(x, tl.full(PART, 1.0, tl.float32))
            if not right:
                tl.send("E", token())
        if right:
            tl.send("E", token())
    if me() == 1:
        tl.recv("W", 1, tl.float32)
        tl.store(y, tl.load(x, PART))


@racy_block
def operand_written_over_too_late(x: Pointer, y: Pointer, right: int) -> None:
    # A command that writes over the value of a store waits for that, without a tl.wait.
    if me() == 0:
        block, others = (tl.full(PART, 1.0, tl.float32) for _ in range(2))
        tl.store_async(x, block)
        tl.load(y + PART, PART, out=block if right else others)
        tl.send("E", token())
    if me() == 1:
        tl.recv("W", 1, tl.float32)
        tl.store(y, tl.load(x, PART))


@racy_block
def slots_released_in_another_order(x: Pointer, y: Pointer, right: int) -> None:
    # Credits return in the order of the ring: that of the second slot waits for the first release.
    if me() == 0:
        for _ in range(SLOTS + 2):
            tl.send("E", token())
        tl.store(x, tl.full(PART, 1.0, tl.float32))
    if me() == 1:
        first, second = (_arrived(_posted("W")) for _ in range(2))
        tl.release(second)
        if not right:
            tl.release(first)
        tl.store(y, tl.load(x, PART))
        if right:
            tl.release(first)
        for _ in range(SLOTS):
            tl.recv("W", 1, tl.float32)


@racy_block
def receive_over_what_is_read(x: Pointer, y: Pointer, right: int) -> None:
    # PE 1 posts the receive to memory before PE 2 has read there, or behind its token.
    if me() == 0:
        tl.send("E", tl.full(PART, 1.0, tl.float32))
    if me() == 1:
        if right:
            tl.recv("E", 1, tl.float32)
        tl.recv("W", PART, tl.float32, dst_addr=x, dst_space="hbm")
        if not right:
            tl.recv("E", 1, tl.float32)
    if me() == 2:
        tl.store(y, tl.load(x, PART))
        tl.send("W", token())


@racy_block
def slot_of_a_message_in_flight(x: Pointer, y: Pointer, right: int) -> None:
    # The last message is sent, and its receive is posted, while the first one is in its slot.
    if me() == 0:
        sends = [tl.send_async("E", token()) for _ in range(SLOTS + 1)]
        tl.wait(sends[-1])
        tl.store(x, tl.full(PART, 1.0, tl.float32))
    if me() == 1:
        come = [_posted("W") for _ in range(SLOTS + 1)]
        first = _arrived(come[0])
        if right:
            tl.store(y, tl.load(x, PART))
        tl.release(first)
        for each in come[1:]:
            tl.release(_arrived(each))
        if not right:
            tl.store(y, tl.load(x, PART))


def _posted(direction: str) -> PendingResult:
    target = tl.empty(1, tl.float32)
    return tl.recv_async(direction, dst_addr=target, dst_space="tcm", in_place=True)


def _arrived(pending: PendingResult) -> tl.Value:
    value = tl.wait(pending)
    assert value is not None
    return value


@racy_block
def counter_read_by_a_load(x: Pointer, y: Pointer, right: int) -> None:
    if me() == 0:
        block = tl.atomic("add", x, token() * 0) if right else tl.load(x, 1)
        assert block is not None
        tl.store(y, block)
    else:
        tl.atomic("add", x, token(), sem="relaxed")


@racy_block
def sum_read_beside_atomic_additions(x: Pointer, y: Pointer, right: int) -> None:
    tl.atomic("add", x, tl.full(PART, me(), tl.float32), old=False)
    if right:
        tl.barrier()
    tl.store(y + me() * PART, tl.load(x, PART))
