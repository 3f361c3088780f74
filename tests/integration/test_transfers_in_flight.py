"""Loads and stores in flight: channels, order, ends, and the values and memory that they use."""

from collections.abc import Callable

import numpy as np
import pytest

from runtime import mock, tl
from runtime.core.errors import KernelError
from runtime.language.context import running_kernel
from runtime.language.running import MathOptions
from runtime.language.value import Pointer, Value
from runtime.model.topology import load_topology
from tests.support.one_pe import OnePe, run_on_one_pe

F32 = tl.float32
BLOCK = 4096
PE = load_topology().pe
ISSUE_PS = round(1000 * (PE.cpu.overhead_ns + PE.scheduler.overhead_ns + PE.mmu.overhead_ns))
"""The time of a command with virtual addresses."""


def ramp(*shape: int) -> np.ndarray:
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


def run(kernel, blocks: int = 8, **keys: object) -> OnePe:
    return run_on_one_pe(
        kernel, [ramp(blocks, BLOCK), np.zeros((blocks, BLOCK), np.float32)], **keys
    )


def doubled_one_by_one(x: Pointer, y: Pointer) -> None:
    for start in range(0, 8 * BLOCK, BLOCK):
        with tl.scratch():
            tl.store(y + start, tl.load(x + start, BLOCK) * 2.0)


def doubled_in_flight(x: Pointer, y: Pointer) -> None:
    starts = range(0, 8 * BLOCK, BLOCK)
    loads = [tl.load_async(x + start, BLOCK) for start in starts[:2]]
    for index, start in enumerate(starts):
        block = loads[index % 2].wait()
        with tl.scratch():
            tl.store_async(y + start, block * 2.0)
            if start + 2 * BLOCK < 8 * BLOCK:
                loads[index % 2] = tl.load_async(x + start + 2 * BLOCK, BLOCK, out=block)


def test_a_pipelined_kernel_gives_the_same_elements_in_less_time() -> None:
    one_by_one, in_flight = run(doubled_one_by_one), run(doubled_in_flight)
    assert in_flight.arrays[1].tobytes() == one_by_one.arrays[1].tobytes()
    assert in_flight.kernel_ps < one_by_one.kernel_ps


@pytest.mark.parametrize("channels", [1, 2, 3])
def test_loads_in_flight_take_channels_in_their_order_and_the_others_queue(channels: int) -> None:
    def kernel(x: Pointer, y: Pointer) -> None:
        loads = [tl.load_async(x + i * BLOCK, BLOCK) for i in range(6)]
        for i, load in enumerate(loads):
            tl.store(y + i * BLOCK, load.wait())

    done = run(kernel, pe__dma__channels=channels)
    assert done.arrays[1][:6].tobytes() == done.arrays[0][:6].tobytes()
    loads = sorted(done.records("pe_dma", "load"), key=lambda load: load.address)
    starts, ends = ([getattr(load, name) for load in loads] for name in ("start_ps", "end_ps"))
    assert starts[:channels] == [starts[0] + i * ISSUE_PS for i in range(channels)]
    # Each of the others begins with the end of the first one in flight.
    assert starts[channels:] == sorted(ends)[: 6 - channels]


def test_a_kernel_ends_when_all_that_it_started_has_ended() -> None:
    def kernel(x: Pointer, y: Pointer) -> None:
        tl.store_async(y, tl.load(x, BLOCK))

    done = run(kernel)
    [store] = done.records("pe_dma", "store")
    [whole] = [record for _, record in done.world.of("pe_cpu", "kernel one_pe")]
    assert whole.end_ps == store.end_ps


def test_the_end_of_a_scope_waits_for_what_uses_its_memory_and_for_nothing_else() -> None:
    def kernel(x: Pointer, y: Pointer) -> None:
        outer = tl.load(x, BLOCK)
        store = tl.store_async(y, outer)
        with tl.scratch():
            tl.store_async(y + BLOCK, tl.load(x + BLOCK, BLOCK))
        tl.load(x + 2 * BLOCK, 1)
        tl.wait(store)

    done = run(kernel, pe__dma__channels=4)
    _, inner = sorted(done.records("pe_dma", "store"), key=lambda store: store.address)
    *_, last = done.records("pe_dma", "load")
    assert last.start_ps == inner.end_ps + ISSUE_PS


def test_commands_wait_for_the_load_that_writes_over_their_operand() -> None:
    def kernel(x: Pointer, y: Pointer) -> None:
        block, other = tl.load(x, BLOCK), tl.load(x, 8)
        tl.load_async(x + BLOCK, BLOCK, out=block)
        tl.store(y + 3 * BLOCK, other + 1)
        tl.store(y, block[8:16] + other)
        tl.store_async(y + BLOCK, block)
        tl.load(x + 2 * BLOCK, BLOCK, out=block)
        tl.store(y + 2 * BLOCK, block)

    done = run(kernel)
    x, y = done.arrays
    assert np.array_equal(y[0, :8], x[1, 8:16] + x[0, :8])
    assert np.array_equal(y[1:3], x[1:3])
    [first, second] = done.records("pe_math", "add")
    _, _, over, again = done.records("pe_dma", "load")
    assert first.start_ps < over.end_ps < second.start_ps
    [*_, kept, _] = done.records("pe_dma", "store")
    assert kept.end_ps < again.start_ps


def test_a_product_is_written_over_its_accumulator() -> None:
    def kernel(x: Pointer, y: Pointer) -> None:
        a, b = tl.load(x, (40, 20)), tl.load(x + 1000, (20, 70))
        total = tl.dot(a, b)
        product = tl.composite("gemm", a, b, total, acc=total)
        assert tl.wait(product) is total
        assert tl.dot(a, b, out=total) is total
        tl.store(y, total + 0)

    done = run(kernel)
    x = done.arrays[0].reshape(-1).astype(np.float64)
    exact = x[:800].reshape(40, 20) @ x[1000:2400].reshape(20, 70)
    np.testing.assert_allclose(done.arrays[1].reshape(-1)[:2800].reshape(40, 70), exact, rtol=1e-6)


def test_empty_blocks_are_complete_at_once() -> None:
    def kernel(x: Pointer, y: Pointer) -> None:
        nothing = tl.load_async(x, (0, 4))
        tl.wait(tl.store_async(y, nothing.wait()))

    assert run(kernel).kernel_ps == 0


def load_while_stored(x: Pointer) -> None:
    tl.store_async(x, tl.zeros(8, F32))
    tl.load(x + 7, 4)


def store_while_loaded(x: Pointer) -> None:
    tl.load_async(x, (4, 2), strides=(16, 1))
    tl.store(x + 2, tl.zeros((4, 14), F32), strides=(16, 1))
    tl.store_async(x + 17, tl.zeros(1, F32))


def store_twice(x: Pointer) -> None:
    tl.store_async(x, tl.zeros(8, F32))
    tl.store_async(x + 4, tl.zeros(8, F32))


def stream_while_stored(x: Pointer) -> None:
    tl.store_async(x + 15, tl.zeros(8, F32))
    tl.dot(tl.ref(x, (4, 4)), tl.zeros((4, 4), F32))


def result_while_loaded(x: Pointer) -> None:
    tl.load_async(x, 1)
    tl.composite("gemm", tl.zeros((4, 4), F32), tl.zeros((4, 4), F32), tl.ref(x, (4, 4)))


# Kernel, the line that is refused, and the two ends of the problem.
RACES = [
    (load_while_stored, 2, "tl.load reads … tl.store_async", "writes"),
    (
        store_while_loaded,
        3,
        "tl.store_async writes … tl.load_async",
        "reads",
    ),
    (store_twice, 2, "tl.store_async writes … tl.store_async", "writes"),
    (
        stream_while_stored,
        2,
        "tl.composite reads … tl.store_async",
        "writes",
    ),
    (result_while_loaded, 2, "tl.composite writes … tl.load_async", "reads"),
]


@pytest.mark.parametrize(("kernel", "line", "races", "verb"), RACES)
def test_a_command_that_races_with_an_operation_in_flight_is_refused(
    kernel: Callable[..., object], line: int, races: str, verb: str
) -> None:
    errors: list[KernelError] = []
    for launch in (mock.launch, lambda kernel, x: run_on_one_pe(kernel, [x])):
        with pytest.raises(KernelError) as raised:
            launch(kernel, ramp(64))
        errors.append(raised.value)
    on_mock, on_chip = errors
    assert on_mock.problem == on_chip.problem
    first = kernel.__code__.co_firstlineno
    began = races.replace("…", "bytes of memory that the")
    assert on_chip.problem.startswith(f"{began} at tests/integration/test_transfers_in_flight.py:")
    assert f"{verb}; that is in flight until the kernel waits for it" in on_chip.problem
    assert on_mock.line == on_chip.line
    assert on_chip.line.endswith(f":{first + line}")


def test_a_pending_result_has_no_operators() -> None:
    def kernel(x: Pointer) -> None:
        first, _ = tl.load_async(x, (2, 4))
        tl.store(x, first)

    for launch in (mock.launch, lambda kernel, x: run_on_one_pe(kernel, [x])):
        with pytest.raises(KernelError, match="iteration is not defined for a pending result"):
            launch(kernel, ramp(64))


OUTS = [
    (
        lambda x: tl.load(x, 4, out=x),
        "tl.load: out is a value in TCM to be written over, not Pointer",
    ),
    (
        lambda x: tl.load_async(x, 4, out=tl.zeros(3, F32)),
        "tl.load_async: the result, f32 of shape (4,), does not fit over out, f32 of shape (3,)",
    ),
    (
        lambda x: tl.dot(tl.zeros((2, 2), F32), tl.zeros((2, 2), F32), out=tl.ref(x, (2, 2))),
        "tl.dot: out is a value in TCM, not Ref",
    ),
]


@pytest.mark.parametrize(("kernel", "problem"), OUTS)
def test_a_result_that_cannot_be_written_over_a_value_is_refused(
    kernel: Callable[..., object], problem: str
) -> None:
    with pytest.raises(KernelError) as raised:
        mock.launch(kernel, ramp(64))
    assert raised.value.problem.startswith(problem)


def test_the_result_of_a_product_does_not_overlap_its_operands() -> None:
    def over_a(x: Pointer) -> None:
        a = tl.zeros((4, 4), F32)
        tl.dot(a, a, out=a)

    def over_part_of_acc(x: Pointer) -> None:
        acc: Value = tl.zeros((8, 4), F32)
        a = tl.zeros((4, 4), F32)
        tl.dot(a, a, acc[:4], out=acc[2:6])

    for kernel, problem in (
        (over_a, "shares bytes with the operand"),
        (over_part_of_acc, "it must be acc, or apart from it"),
    ):
        with pytest.raises(KernelError, match=problem):
            mock.launch(kernel, ramp(64))


def test_an_elementwise_operation_is_written_over_an_operand() -> None:
    def kernel(x: Pointer, y: Pointer) -> None:
        total, block = tl.load(x, (2, BLOCK)), tl.load(x + 2 * BLOCK, (2, BLOCK))
        pe = running_kernel()
        assert pe.math("add", (total, block), out=total) is total
        pe.math("sum", (total[:1],), MathOptions(axis=0, keep_dims=True), block[:1])
        tl.store(y, tl.cat([total, block]))

    done = run(kernel)
    x, y = done.arrays
    assert np.array_equal(y[:2], x[:2] + x[2:4])
    assert np.array_equal(y[2:4], [y[0], x[3]])


@pytest.mark.parametrize("name", ["add", "trans"])
def test_a_result_over_another_part_of_an_operand_is_refused(name: str) -> None:
    def kernel(x: Pointer) -> None:
        block = tl.load(x, (8, 4))
        operands = (block[:4], 1.0) if name == "add" else (block[:4],)
        running_kernel().math(name, operands, out=block[1:5] if name == "add" else block[:4])

    with pytest.raises(KernelError, match=f"{name}: out, .*, shares bytes with the operand"):
        mock.launch(kernel, ramp(64))
