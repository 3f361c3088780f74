"""Programs of one PE or two that use an element which nothing has written, and their right twins.

Each takes `right`, which is 1 for the twin.
"""

from collections.abc import Callable

from runtime import DPPolicy, tl, torch
from runtime.language.value import Pointer

COUNT = 64
ON_ONE = DPPolicy(num_cubes=1, num_pes=1)
ON_TWO = DPPolicy(pe="row_wise", num_cubes=1, num_pes=2)
Program = Callable[[int], None]
PROGRAMS: dict[str, Program] = {}


def undefined(program: Program) -> Program:
    """Add a program, which has initialised its process group."""
    PROGRAMS[program.__name__] = program
    return program


def tensor(right: int, count: int = COUNT) -> torch.Tensor:
    """A tensor that is written, or not."""
    return (torch.zeros if right else torch.empty)(count, dp=ON_ONE)


def launch(kernel: Callable[..., object], *arguments: object) -> None:
    torch.launch(kernel.__name__, kernel, *arguments)


def increment(x: Pointer, y: Pointer) -> None:
    tl.store(y, tl.load(x, COUNT) + 1)


def copy(x: Pointer, y: Pointer) -> None:
    tl.store(y, tl.load(x, COUNT))


@undefined
def an_empty_tensor_in_a_sum(right: int) -> None:
    launch(increment, tensor(right), tensor(1))


@undefined
def a_tensor_that_is_written_in_half(right: int) -> None:
    x = torch.empty(COUNT, dp=ON_ONE)

    def fill(p: Pointer) -> None:
        tl.store(p, tl.full(COUNT if right else COUNT // 2, 1.0, tl.float32))

    launch(fill, x)
    launch(increment, x, tensor(1))


@undefined
def every_other_column(right: int) -> None:
    x = torch.empty(COUNT, dp=ON_ONE)

    def fill(p: Pointer, y: Pointer) -> None:
        tl.store(p, tl.full((8, 4), 1.0, tl.float32), strides=(8, 1))
        # The columns that are written, or the ones beside them.
        tl.store(y, tl.load(p + (0 if right else 2), (8, 4), strides=(8, 1)) + 1)

    launch(fill, x, tensor(1))


@undefined
def a_value_of_empty(right: int) -> None:
    def kernel(y: Pointer) -> None:
        block = tl.empty(COUNT, tl.float32)
        if right:
            tl.load(y, COUNT, out=block)
        tl.store(y, block * 2)

    launch(kernel, tensor(1))


@undefined
def a_copy_of_an_empty_tensor(right: int) -> None:
    y = tensor(1)
    launch(copy, tensor(right), y)
    launch(increment, y, tensor(1))


@undefined
def an_empty_value_in_a_message(right: int) -> None:
    def kernel(x: Pointer, y: Pointer) -> None:
        if tl.program_id(0) == 0:
            tl.send("E", tl.load(x, COUNT))
        else:
            tl.store(y, tl.recv("W", COUNT, tl.float32) + 1)

    make = torch.zeros if right else torch.empty
    launch(kernel, make(COUNT, dp=ON_TWO), torch.zeros(COUNT, dp=ON_TWO))


@undefined
def a_message_to_memory(right: int) -> None:
    def kernel(x: Pointer, y: Pointer) -> None:
        if tl.program_id(0) == 0:
            tl.send("E", tl.load(x, COUNT))
        else:
            tl.recv("W", COUNT, dst_addr=y, dst_space="hbm")

    make = torch.zeros if right else torch.empty
    y = torch.zeros(COUNT, dp=ON_TWO)
    launch(kernel, make(COUNT, dp=ON_TWO), y)
    y.numpy()


@undefined
def gathered_rows(right: int) -> None:
    x = torch.empty(COUNT, dp=ON_ONE)

    def kernel(p: Pointer, y: Pointer) -> None:
        tl.store(p, tl.full(32, 1.0, tl.float32))
        rows = tl.gather(p, (0, 2 if right else 6), (8,))
        tl.store(y, tl.exp(rows).reshape(16))

    launch(kernel, x, tensor(1))


@undefined
def the_index_of_a_gather(right: int) -> None:
    make = torch.zeros if right else torch.empty
    rows = make(4, dtype=torch.int32, dp=ON_ONE)

    def kernel(p: Pointer, indices: Pointer, y: Pointer) -> None:
        tl.store(y, tl.gather(p, tl.load(indices, 4), (8,)).reshape(32))

    launch(kernel, tensor(1), rows, tensor(1))


@undefined
def a_part_of_a_reshaped_value(right: int) -> None:
    def kernel(x: Pointer, y: Pointer) -> None:
        tl.store(x, tl.full(32, 1.0, tl.float32))
        block = tl.load(x, COUNT).reshape(8, 8)
        tl.store(y, tl.sum(block[0:4] if right else block[3:5]))

    launch(kernel, torch.empty(COUNT, dp=ON_ONE), tensor(1))


@undefined
def joined_values(right: int) -> None:
    def kernel(x: Pointer, y: Pointer) -> None:
        both = tl.cat([tl.full(16, 1.0, tl.float32), tl.load(x, 16)])
        tl.store(y, tl.exp(both[0:16] if right else both[8:24]))

    launch(kernel, torch.empty(COUNT, dp=ON_ONE), tensor(1))


@undefined
def a_transposed_matrix(right: int) -> None:
    def kernel(x: Pointer, y: Pointer) -> None:
        tl.store(x, tl.full(32, 1.0, tl.float32))
        # The upper rows are written: so are the columns on the left of the transposed matrix.
        columns = tl.trans(tl.load(x, (8, 8)))
        tl.store(y, tl.load(x, 4) + 1)
        first = 0 if right else 4
        block = columns.mT[first : first + 4]
        tl.store(y, tl.exp(block).reshape(32))

    launch(kernel, torch.empty(COUNT, dp=ON_ONE), tensor(1))


@undefined
def an_operand_of_a_product(right: int) -> None:
    def kernel(x: Pointer, y: Pointer) -> None:
        a = tl.full((8, 8), 1.0, tl.float32)
        tl.wait(tl.composite("gemm", a, tl.ref(x, (8, 8)), tl.ref(y, (8, 8))))

    launch(kernel, tensor(right), tensor(1))


@undefined
def the_sum_of_a_product(right: int) -> None:
    def kernel(y: Pointer) -> None:
        a, total = tl.full((8, 8), 1.0, tl.float32), tl.empty((8, 8), tl.float32)
        if right:
            tl.load(y, (8, 8), out=total)
        tl.store(y, tl.dot(a, a, total).reshape(COUNT))

    launch(kernel, tensor(1))


@undefined
def a_bias_of_a_product(right: int) -> None:
    def kernel(y: Pointer) -> None:
        a = tl.full((8, 8), 1.0, tl.float32)
        bias = tl.full(8, 1.0, tl.float32) if right else tl.empty(8, tl.float32)
        tl.store(y, tl.wait(tl.composite("gemm", a, a, bias=bias)).reshape(COUNT))

    launch(kernel, tensor(1))


@undefined
def half_of_an_operand_in_tcm(right: int) -> None:
    def kernel(y: Pointer) -> None:
        a, b = tl.full((8, 8), 1.0, tl.float32), tl.empty((8, 8), tl.float32)
        for first in (0, 4)[: 1 + right]:
            tl.load(y, (4, 8), out=b[first : first + 4])
        tl.store(y, tl.dot(a, b).reshape(COUNT))

    launch(kernel, tensor(1))


@undefined
def scratch_that_is_used_again(right: int) -> None:
    def kernel(y: Pointer) -> None:
        with tl.scratch():
            tl.store(y, tl.full(COUNT, 1.0, tl.float32))
        block = tl.empty(COUNT, tl.float32)
        if right:
            tl.load(y, COUNT, out=block)
        tl.store(y, block + 1)

    launch(kernel, tensor(1))


@undefined
def a_part_that_was_received(right: int) -> None:
    def kernel(y: Pointer) -> None:
        if tl.program_id(0) == 0:
            tl.send("E", tl.full(32, 1.0, tl.float32))
        else:
            block = tl.empty(COUNT, tl.float32)
            tl.recv("W", 32, tl.float32, dst_addr=block[0:32])
            tl.store(y, tl.exp(block[0:32] if right else block[1:33]))

    launch(kernel, torch.zeros(COUNT, dp=ON_TWO))


@undefined
def a_message_in_its_slots(right: int) -> None:
    def kernel(x: Pointer, y: Pointer) -> None:
        if tl.program_id(0) == 0:
            tl.send("E", tl.load(x, COUNT))
        else:
            target = tl.empty(COUNT, tl.float32)
            block = tl.wait(tl.recv_async("W", dst_addr=target, dst_space="tcm", in_place=True))
            tl.store(y, block * 2)
            tl.release(block)

    make = torch.zeros if right else torch.empty
    launch(kernel, make(COUNT, dp=ON_TWO), torch.zeros(COUNT, dp=ON_TWO))


@undefined
def a_part_on_the_host(right: int) -> None:
    x = torch.empty(COUNT, dp=ON_ONE)
    x[16:48] = 1.0
    assert len(x[16 : 49 - right]) == 33 - right


@undefined
def a_read_on_the_host(right: int) -> None:
    tensor(right).numpy()


@undefined
def a_sum_of_all_ranks_of_two(right: int) -> None:
    torch.distributed.all_reduce(tensor(right))


@undefined
def a_tensor_of_a_broadcast_of_two(right: int) -> None:
    x = tensor(right)
    torch.distributed.broadcast(x, 0)
    launch(increment, x, tensor(1))


@undefined
def padding_of_a_gather_of_two(right: int) -> None:
    x, parts = tensor(0), [tensor(0), tensor(0)]
    x[:32] = 1.0
    torch.distributed.all_gather(parts, x)

    def used(p: Pointer, y: Pointer) -> None:
        tl.store(y, tl.load(p, 33 - right) + 1)

    launch(used, parts[1], tensor(1))


@undefined
def a_part_of_an_exchange_of_two(right: int) -> None:
    x, y = tensor(0), tensor(0)
    x[: 32 + 32 * right] = 1.0
    torch.distributed.all_to_all_single(y, x)
    launch(increment, y, tensor(1))


@undefined
def memory_of_a_dead_tensor(right: int) -> None:
    first = tensor(1)
    launch(increment, first, tensor(1))
    torch.ahbm.synchronize()
    del first
    launch(increment, tensor(right), tensor(1))


@undefined
def an_atomic_sum_of_nothing(right: int) -> None:
    def kernel(x: Pointer) -> None:
        tl.atomic("add", x, tl.full(COUNT, 1.0, tl.float32), old=False)

    launch(kernel, tensor(right))


@undefined
def three_bytes_of_an_element(right: int) -> None:
    def kernel(x: Pointer, y: Pointer) -> None:
        count = 4 * COUNT - (not right)
        tl.store(Pointer(x.address, tl.int8), tl.full(count, 0, tl.int8))
        tl.store(y, tl.load(x, COUNT) + 1)

    launch(kernel, torch.empty(COUNT, dp=ON_ONE), tensor(1))


@undefined
def one_launch_of_many(right: int) -> None:
    def part(x: Pointer, y: Pointer, count: int) -> None:
        tl.store(y, tl.load(x, count) + 1)

    x, y = torch.empty(COUNT, dp=ON_ONE), tensor(1)
    x[: COUNT - 1] = 1.0
    for number in range(60):
        launch(part, x, y, COUNT - (number != 30 or right))


@undefined
def a_transposed_operand_that_is_streamed(right: int) -> None:
    def kernel(x: Pointer, y: Pointer) -> None:
        tl.store(x, tl.full((8, 7 + right), 1.0, tl.float32), strides=(8, 1))
        a = tl.full((8, 8), 1.0, tl.float32)
        tl.wait(tl.composite("gemm", a, tl.ref(x, (8, 8)).mT, tl.ref(y, (8, 8))))

    launch(kernel, torch.empty(COUNT, dp=ON_ONE), tensor(1))


@undefined
def scattered_parts_of_two(right: int) -> None:
    x = torch.empty(COUNT, dp=ON_ONE)
    parts = [tensor(1), tensor(right)] if torch.distributed.get_rank() == 0 else None
    torch.distributed.scatter(x, parts, src=0)
    launch(increment, x, tensor(1))
