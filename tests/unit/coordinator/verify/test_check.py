"""`--verify-data` on op logs that the test writes: correct ones pass, every corruption is named."""

from collections.abc import Callable

import numpy as np
import pytest
from msgspec.structs import replace

from coordinator.verify.check import verify
from runtime.core.trace import Operand, OpRecord
from tests.support.op_logs import ADDRESSES, HBM, REGS, TCM, Array, Log, block

A = np.arange(1, 13, dtype=np.float16).reshape(3, 4)
B = np.linspace(-1, 1, 8, dtype=np.float16).reshape(4, 2)
PRODUCT = (A.astype(np.float64) @ B.astype(np.float64)).astype(np.float32)


def pipeline() -> Log:
    """A product as the tile pipeline records it: matrices from HBM, the result to HBM and host."""
    log = Log()
    a, b = log.host_write(HBM, A), log.host_write(HBM + 4096, B)
    a = log.leave("pe_dma", "load", (a,), TCM, A)
    b = log.leave("pe_dma", "load", (b,), TCM + 4096, B)
    registers = (
        log.leave("pe_fetch_store", "fetch", (a,), REGS, A),
        log.leave("pe_fetch_store", "fetch", (b,), REGS + 4096, B),
    )
    product = log.leave("pe_gemm", "gemm", registers, REGS + 8192, PRODUCT)
    stored = log.leave(
        "pe_fetch_store", "store", (product,), TCM + 8192, PRODUCT.astype(np.float16)
    )
    tripled = log.leave(
        "pe_math", "mul", (stored, 3.0), TCM + 12288, PRODUCT.astype(np.float16) * np.float16(3)
    )
    out = log.leave(
        "pe_dma", "store", (tripled,), HBM + 8192, PRODUCT.astype(np.float16) * np.float16(3)
    )
    data = np.frombuffer((PRODUCT.astype(np.float16) * np.float16(3)).tobytes(), np.uint8)
    log.leave("host", "MemoryReadMsg", (Operand(out.address, data.shape, "u8"),), out.address, data)
    return log


def test_a_correct_log_passes_and_its_statistics_count_what_was_compared():
    verdict = pipeline().verdict()
    assert verdict.problems == ()
    assert (verdict.passed, verdict.operations) == (True, 11)
    figures = {
        figures.memory: (figures.buffers, figures.elements, figures.worst_eps)
        for figures in verdict.memories
    }
    # HBM: both matrices as the host's bytes and the result. TCM: the loaded matrices, the stored
    # product and its triple.
    assert figures == {"hbm": (3, 24 + 16 + 6, 0.0), "tcm": (4, 12 + 8 + 6 + 6, 0.0)}


def test_the_order_of_the_records_in_the_log_does_not_matter_but_for_what_the_host_wrote():
    log = pipeline()
    assert log.verdict([*log.records[:2], *reversed(log.records[2:])]).passed


HOST, LOAD, GEMM, ROUND, MUL, STORE, READ = 0, 2, 6, 7, 8, 9, 10


def _moved(record: OpRecord) -> OpRecord:
    return replace(record, address=record.address + 64)


def _reads_elsewhere(record: OpRecord) -> OpRecord:
    first, *rest = record.inputs
    assert isinstance(first, Operand)
    return replace(record, inputs=(replace(first, address=first.address + 2), *rest))


def _another_number(record: OpRecord) -> OpRecord:
    return replace(record, inputs=(record.inputs[0], 2.0))


CORRUPTIONS: dict[str, tuple[Callable[[OpRecord], OpRecord], tuple[int, ...]]] = {
    "result elsewhere": (_moved, (HOST, LOAD, GEMM, ROUND, MUL, STORE)),
    "input elsewhere": (_reads_elsewhere, (LOAD, GEMM, ROUND, MUL, STORE, READ)),
    "one axis more": (lambda record: replace(record, shape=(*record.shape, 1)), (GEMM, ROUND, MUL)),
    "fewer elements": (
        lambda record: replace(record, shape=(2,)),
        (HOST, LOAD, GEMM, MUL, STORE, READ),
    ),
    "negative length": (lambda record: replace(record, shape=(-3, -4)), (LOAD, GEMM)),
    "another type": (lambda record: replace(record, dtype="bf16"), (LOAD, GEMM, ROUND, MUL, STORE)),
    "unknown type": (lambda record: replace(record, dtype="f64"), (HOST, LOAD, GEMM, MUL)),
    "unknown name": (
        lambda record: replace(record, name="other"),
        (HOST, LOAD, GEMM, ROUND, MUL, STORE, READ),
    ),
    "another name": (lambda record: replace(record, name="add"), (MUL,)),
    "a port that does not round": (lambda record: replace(record, name="fetch"), (ROUND,)),
    "unknown engine": (
        lambda record: replace(record, engine="other"),
        (LOAD, GEMM, ROUND, MUL, STORE),
    ),
    "another checksum": (
        lambda record: replace(record, checksum=record.checksum ^ 1),
        (HOST, LOAD, ROUND, MUL, READ),
    ),
    "more bytes": (
        lambda record: replace(record, nbytes=record.nbytes + 1),
        (HOST, LOAD, GEMM, MUL, READ),
    ),
    "an input lost": (
        lambda record: replace(record, inputs=record.inputs[:-1]),
        (LOAD, GEMM, ROUND, MUL, STORE, READ),
    ),
    "another number": (_another_number, (MUL,)),
    "another pitch": (lambda record: replace(record, strides=(5, 1)), (LOAD,)),
    "strides of another shape": (lambda record: replace(record, strides=(1,)), (LOAD,)),
    "an end before the start": (
        lambda record: replace(record, end_ps=record.start_ps - 1),
        (LOAD,),
    ),
    "too early": (lambda record: replace(record, start_ps=0, end_ps=0), (GEMM,)),
    "too late": (lambda record: replace(record, end_ps=record.end_ps + 10**6), (LOAD,)),
}


@pytest.mark.parametrize("corruption", CORRUPTIONS)
def test_a_corrupted_record_does_not_pass(corruption: str):
    change, indices = CORRUPTIONS[corruption]
    for index in indices:
        log = pipeline()
        log.records[index] = change(log.records[index])
        assert not log.verdict().passed, index


@pytest.mark.parametrize("index", range(10))
def test_a_lost_record_does_not_pass(index: int):
    log = pipeline()
    assert not log.verdict(
        [record for place, record in enumerate(log.records) if place != index]
    ).passed


def test_a_record_too_many_does_not_pass():
    log = pipeline()
    gemm = log.records[GEMM]
    again = replace(
        gemm,
        inputs=(*gemm.inputs, block(gemm.address, PRODUCT)),
        start_ps=gemm.end_ps,
        end_ps=gemm.end_ps,
    )
    assert "'gemm'" in log.verdict([*log.records, again]).problems[0]
    assert (
        "the host has sent 0 of them" in log.verdict([*log.records, log.records[HOST]]).problems[0]
    )


def test_the_first_differing_record_is_named_with_component_time_operands_and_right_values():
    log = pipeline()
    log.records[MUL] = _another_number(log.records[MUL])
    problem = log.verdict().problems[0]
    assert problem.startswith(
        f"sip 0 cube3.pe1.pe_math 'mul' of 8.000 ns to 9.000 ns, record {MUL}, (f16[3, 2] at "
    )
    checksum = f"its result has the checksum {log.records[MUL].checksum:#010x}"
    assert f", 2) -> f16[3, 2] at {TCM + 12288:#x}: {checksum}" in problem
    first = float(PRODUCT.astype(np.float16)[0, 0] * 2)
    assert f"replayed it is [{first:g}, " in problem


@pytest.mark.parametrize("bit", [0, 7])
@pytest.mark.parametrize(
    "address", [HBM + 3, HBM + 4096, HBM + 8195, TCM + 5, TCM + 8200, TCM + 12290]
)
def test_a_bit_that_has_flipped_in_a_memory_is_found(address: int, bit: int):
    log = pipeline()
    log.contents[address] ^= 1 << bit
    verdict = log.verdict()
    assert len(verdict.problems) == 1
    assert "sip 0 cube 3 pe 1: " in verdict.problems[0]
    assert ", written by sip 0 cube3.pe1." in verdict.problems[0]


def test_a_buffer_that_differs_is_named_with_its_last_writer_and_both_values():
    log = pipeline()
    log.poke(Operand(HBM + 8192 + 4, (1,), "f16"), np.array([99], np.float16))
    (problem,) = log.verdict().problems
    location = f"sip 0 cube 3 pe 1: hbm at 0x2004 ({HBM + 0x2004:#x})"
    assert problem.startswith(f"{location}, written by sip 0 cube3.pe1.pe_dma 'store'")
    right = float(PRODUCT.astype(np.float16)[1, 0] * np.float16(3))
    assert (
        f"1 elements of 6 differ; element 2 is 99, replayed {right:g}, may differ by 0" in problem
    )


def test_bytes_that_no_record_has_written_are_found():
    log = pipeline()
    log.contents[HBM + 77777] = 1
    log.contents[ADDRESSES.cube_sram_addr(0, 2, 5)] = 1
    (problem,) = log.verdict().problems
    assert "sip 0 cube 2: sram at 0x5" in problem
    assert "the simulation has data, no record wrote it (2 buffers differ in all)" in problem


def test_a_result_where_there_is_no_memory_is_found():
    log = pipeline()
    log.leave("pe_dma", "store", (block(TCM, A),), TCM + (100 << 20), A)
    assert "reserved" in log.verdict().problems[0]


def test_the_host_must_have_written_the_bytes_of_its_records():
    log = pipeline()
    log.written += b"more"
    assert "its host wrote 4 bytes more than its records have" in log.verdict().problems[0]
    del log.written[-6:]
    assert "the host has sent 14 of them" in log.verdict().problems[0]


def test_strides_gather_and_scatter():
    log = Log()
    matrix = np.arange(24, dtype=np.float32).reshape(4, 6)
    log.host_write(HBM, matrix)
    corner = log.leave(
        "pe_dma", "load", (Operand(HBM + 8, (3, 2), "f32", (6, 1)),), TCM, matrix[:3, 2:4].copy()
    )
    column = Operand(corner.address + 4, (3, 1), "f32", (2, 1))
    row = Operand(corner.address, (1, 2), "f32", (2, 1))
    total = log.leave("pe_math", "add", (column, row), TCM + 64, matrix[:3, 3:4] + matrix[:1, 2:4])
    log.leave(
        "pe_dma", "store", (total,), HBM + 4, matrix[:3, 3:4] + matrix[:1, 2:4], strides=(6, 1)
    )
    assert log.verdict().problems == ()


def one(name: str, start_ps: int, end_ps: int, source: int, target: int, value: float) -> OpRecord:
    """A copy of one f32 whose result is `value`."""
    result = np.array([value], np.float32)
    operand = block(target, result)
    made = Log()
    made.leave("pe_dma", name, (replace(operand, address=source),), target, result)
    return replace(made.records[0], start_ps=start_ps, end_ps=end_ps)


def passes(*records: OpRecord, sips: int = 1) -> bool:
    """Copies between the first elements of TCM, with 5 in HBM; SIP k has every k-th record."""
    source = Log()
    source.host_write(HBM, np.array([5], np.float32))
    logs = {sip: list(records[sip::sips]) for sip in range(sips)}
    logs[0].insert(0, replace(source.records[0], start_ps=-2, end_ps=-1))
    return not any(
        "checksum" in problem
        for problem in verify(logs, {0: source.written}, [], ADDRESSES).problems
    )


@pytest.mark.parametrize("read", [5.0, 0.0])
def test_results_at_a_time_come_before_reads_at_that_time(read: float):
    assert passes(one("load", 0, 10, HBM, TCM, 5), one("load", 10, 20, TCM, TCM + 4, read)) == (
        read == 5
    )


@pytest.mark.parametrize("read", [5.0, 0.0])
def test_an_input_is_what_was_there_at_the_start(read: float):
    """The word is overwritten with 0 while it is being copied."""
    first, zero = one("load", 0, 10, HBM, TCM, 5), one("load", 11, 12, TCM + 64, TCM, 0)
    assert passes(first, zero, one("load", 10, 20, TCM, TCM + 4, read)) == (read == 5)


@pytest.mark.parametrize("read", [5.0, 0.0])
def test_an_operation_that_takes_no_time_reads_what_records_before_it_left_at_that_time(
    read: float,
):
    chain = one("load", 10, 10, TCM, TCM + 4, read)
    assert passes(
        one("load", 0, 10, HBM, TCM, 5), chain, one("load", 10, 15, TCM + 4, TCM + 8, read)
    ) == (read == 5)


@pytest.mark.parametrize("read", [5.0, 0.0])
def test_at_one_time_the_sips_come_in_the_order_of_their_numbers(read: float):
    assert passes(
        one("load", 10, 10, HBM, TCM, 5), one("load", 10, 10, TCM, TCM + 4, read), sips=2
    ) == (read == 5)


def rounded_elsewhere(ulps: int) -> Log:
    """An exponential, off by `ulps` in one element, sent through a queue and added to a number."""
    log = Log()
    x = np.array([0.5, 1.0, 2.0], np.float32)
    y = np.exp(x.astype(np.float64)).astype(np.float32)
    for _ in range(ulps):
        y[0] = np.nextafter(y[0], np.float32(10))
    value = log.leave("pe_dma", "load", (log.host_write(HBM, x),), TCM, x)
    value = log.leave("pe_math", "exp", (value,), TCM + 64, y)
    raw = np.frombuffer(y.tobytes(), np.uint8)
    slot = log.leave(
        "pe_dma", "ipcq_send", (Operand(value.address, raw.shape, "u8"),), HBM + 4096, raw
    )
    arrived = log.leave(
        "pe_dma", "ipcq_recv", (Operand(slot.address, y.shape, "f32"),), TCM + 128, y
    )
    left = log.leave(
        "pe_math", "sub", (arrived, float(np.float32(1.6487))), TCM + 192, y - np.float32(1.6487)
    )
    log.leave("pe_dma", "store", (left,), HBM + 8192, y - np.float32(1.6487))
    return log


def test_another_rounding_of_a_function_is_accepted_and_reported():
    verdict = rounded_elsewhere(1).verdict()
    assert verdict.problems == ()
    # One unit in the last place of 1.65 is 2^-23: 0.6 of what eps allows for a number of that size.
    worst = {figures.memory: figures.worst_eps for figures in verdict.memories}
    assert worst["hbm"] == pytest.approx(1 / np.exp(0.5), rel=1e-5)


def test_more_than_rounding_is_a_difference_where_it_was_made_and_where_it_went():
    verdict = rounded_elsewhere(8).verdict()
    operation, buffer = verdict.problems
    assert "'exp' of 2.000 ns" in operation
    assert "pe_math 'exp' of 2.000 ns" in buffer
    assert (
        "1 elements of 3 differ; element 0 is 1.64872, replayed 1.64872, may differ by 7.86"
        in buffer
    )
    # The exponential, its bytes in the slot and at their destination; the sum is within bounds.
    assert "(3 buffers differ in all)" in buffer


def test_an_exact_operation_must_have_every_bit():
    log = pipeline()
    right = PRODUCT.astype(np.float16) * np.float16(3)
    wrong = np.nextafter(right, np.float16(1000))
    log.records[MUL] = replace(log.records[MUL], checksum=_checksum(wrong))
    assert "'mul'" in log.verdict().problems[0]


def test_another_sign_of_a_zero_is_accepted_from_an_operation_that_chooses():
    for name, accepted in (("maximum", True), ("add", False)):
        log = Log()
        zeros = np.zeros(4, np.float32)
        value = log.leave("pe_dma", "load", (log.host_write(HBM, zeros),), TCM, zeros)
        log.leave("pe_math", name, (value, 0.0), TCM + 64, -zeros)
        assert log.verdict().passed == accepted


def test_a_value_that_was_overwritten_in_part_counts_with_what_is_left_of_it():
    log = Log()
    log.host_write(HBM, np.arange(8, dtype=np.float32))
    log.host_write(HBM + 8, np.ones(2, np.float32))
    verdict = log.verdict()
    assert verdict.passed
    assert [(figures.buffers, figures.elements) for figures in verdict.memories] == [(2, 32)]
    log.contents[HBM + 9] ^= 1
    assert not log.verdict().passed


def test_registers_are_checked_by_their_records_alone():
    log = pipeline()
    for address in [address for address in log.contents if REGS <= address < REGS + 65536]:
        del log.contents[address]
    assert log.verdict().passed


def test_an_empty_run_has_nothing_to_verify():
    verdict = verify({}, {}, [], ADDRESSES)
    assert (verdict.passed, verdict.operations, verdict.memories) == (True, 0, ())


def test_records_without_data_are_not_replayed():
    log = pipeline()
    log.records.append(OpRecord("ucie", "send", 0, 5, address=HBM, nbytes=64))
    assert log.verdict().operations == 11


def _checksum(array: Array) -> int:
    log = Log()
    log.leave("pe_math", "mul", (), TCM, array)
    return log.records[0].checksum
