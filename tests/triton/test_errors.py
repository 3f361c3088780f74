"""Mistakes of a kernel or a launch: one error each, with the line and the rule."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl

from kernbench import torch
from kernbench.triton.interpreter import connected
from runtime.core.errors import KernelError, PageFaultError
from tests.triton.cases import Launches, run


@triton.jit
def copy_kernel(X, Y, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    tl.store(Y + offs, tl.load(X + offs))  # the copy


def launched(kernel: Any, *arrays: np.ndarray, grid: Any = (1,), **options: Any) -> None:
    def program(launches: Launches):
        launches(kernel, grid, *map(launches.put, arrays), **options)
        return [(launches.put(np.zeros(1)), np.zeros(1), 0)]

    run(program)


def line_of(text: str) -> str:
    lines = Path(__file__).read_text("utf-8").splitlines()
    (number,) = [
        at for at, line in enumerate(lines, start=1) if text in line and "line_of" not in line
    ]
    return f"test_errors.py:{number}"


def problem(kernel: Any, *arrays: np.ndarray, **options: Any) -> KernelError:
    with pytest.raises(KernelError) as raised:
        launched(kernel, *(arrays or (np.zeros(64, np.float32),)), **options)
    return raised.value


def test_a_read_outside_of_every_tensor_is_a_page_fault_with_its_mask():
    small = np.zeros(4, np.float32)
    with pytest.raises(PageFaultError) as raised:
        launched(copy_kernel, small, np.zeros(4096, np.float32), BLOCK=4096)
    error = raised.value
    assert error.line.endswith(line_of("# the copy"))
    assert error.program == (0,)
    assert "tensor" in error.tensor
    assert error.tensor.endswith("; without a mask")


def test_a_block_over_tcm_names_the_value_and_what_fits():
    big = np.zeros(1 << 19, np.float32)
    error = problem(copy_kernel, big, big, BLOCK=1 << 19)
    assert "f32 (524288,) of 2,097,152 bytes does not fit into the TCM of a kernel" in error.problem
    assert "which hold 262,144 elements" in error.problem
    assert error.line.endswith(line_of("# the copy"))


@triton.jit
def ranged_kernel(X, n):
    tl.load(X + tl.arange(0, n))  # the range


def test_a_shape_that_is_no_constant_is_refused_at_its_line():
    error = problem(ranged_kernel, np.zeros(64, np.float32), n=8)
    assert "must be of type tl.constexpr" in error.problem
    assert error.line.endswith(line_of("# the range"))


@pytest.mark.parametrize("grid", [(0,), (1, 1, 1, 1), "many"])
def test_a_grid_without_programs_or_with_four_axes_is_refused(grid: Any):
    with pytest.raises((TypeError, ValueError), match=r"kernel 'copy_kernel' with grid .* 1 to 3"):
        launched(copy_kernel, np.zeros(8, np.float32), np.zeros(8, np.float32), grid=grid, BLOCK=8)


def test_a_grid_is_required():
    with pytest.raises(TypeError, match="a Triton kernel has a grid"):
        launched(copy_kernel, np.zeros(8, np.float32), np.zeros(8, np.float32), grid=None, BLOCK=8)


def test_an_unknown_keyword_names_the_parameters():
    with pytest.raises(TypeError, match="no parameter 'BLOK'; it has X, Y, BLOCK"):
        launched(copy_kernel, np.zeros(8, np.float32), np.zeros(8, np.float32), BLOK=8)


@triton.jit
def assembly_kernel(X):
    x = tl.load(X + tl.arange(0, 8))
    tl.inline_asm_elementwise("mov", "=r,r", [x], dtype=tl.float32, is_pure=True, pack=1)


@triton.jit
def typed_kernel(X):
    tl.load(X + tl.arange(0, 8)).to(tl.float8e4b15)


@triton.jit
def shaped_kernel(X):
    x = tl.load(X + tl.arange(0, 8))
    x + tl.load(X + tl.arange(0, 16))


@triton.jit
def atomic_word_kernel(X):
    tl.atomic_add(X + tl.arange(0, 8), 1.0, sem="seq_cst")


@triton.jit
def atomic_scope_kernel(X):
    tl.atomic_max(X, 1.0, scope="warp")


@triton.jit
def atomic_bits_kernel(X):
    tl.atomic_or(X, 1.0)


@triton.jit
def atomic_narrow_kernel(X):
    tl.atomic_add(X.to(tl.pointer_type(tl.int8), bitcast=True), 1)


@triton.jit
def atomic_wide_kernel(X):
    tl.atomic_add(X.to(tl.pointer_type(tl.uint64), bitcast=True), 1)


@triton.jit
def atomic_polling_kernel(X):
    tl.atomic_poll(X.to(tl.pointer_type(tl.int32), bitcast=True), 1)


@triton.jit
def asserting_kernel(X):
    x = tl.load(X + tl.arange(0, 8))
    tl.device_assert(x > 0, "positive")


@triton.jit
def static_kernel(X, N: tl.constexpr):
    tl.static_assert(N == 2, "two")


@triton.jit
def branching_kernel(X):
    if tl.load(X + tl.arange(0, 8)) > 0:
        tl.store(X, 1.0)


@triton.jit
def unsigned_kernel(X):
    tl.load(X + tl.arange(0, 8)).to(tl.int32).to(tl.uint64)


@triton.jit
def narrow_kernel(X):
    tl.load(X.to(tl.pointer_type(tl.int16)) + tl.arange(0, 8))


@triton.jit
def narrow_bits_kernel(X):
    tl.load(X + tl.arange(0, 8)).to(tl.float16).to(tl.int16, bitcast=True)


@triton.jit
def gathered_kernel(X):
    tl.gather(tl.load(X + tl.arange(0, 8)), tl.arange(0, 8), 0)


@triton.jit
def extern_kernel(X):
    x = tl.load(X + tl.arange(0, 8))
    tl.extra.libdevice.tgamma(x)


@triton.jit
def external_kernel(X):
    x = tl.load(X + tl.arange(0, 8))
    names = {(tl.core.dtype("fp32"),): ("__nv_tgammaf", tl.core.dtype("fp32"))}
    tl.core.extern_elementwise("libdevice", "", [x], names, is_pure=True)


@triton.jit
def scaled_dot_kernel(X):
    x = tl.load(X + tl.arange(0, 8)[:, None] * 8 + tl.arange(0, 8)[None, :]).to(tl.bfloat16)
    tl.dot_scaled(x, None, "bf16", x, None, "bf16")


@triton.jit
def masked_block_kernel(X):
    tl.load(tl.make_block_ptr(X, (8, 8), (8, 1), (0, 0), (4, 4), (1, 0)), mask=True)


@triton.jit
def axes_kernel(X):
    tl.make_block_ptr(X, (8,), (8, 1), (0, 0), (4, 4), (1, 0))


@triton.jit
def checked_kernel(X):
    tl.load(tl.make_block_ptr(X, (8, 8), (8, 1), (0, 0), (4, 4), (1, 0)), boundary_check=(2,))


@triton.jit
def unaligned_kernel(X):
    address = X.to(tl.pointer_type(tl.int8)) + 1
    tl.load(address.to(tl.pointer_type(tl.float32)) + tl.arange(0, 8))


@triton.jit
def flipped_kernel(X):
    tl.flip(tl.load(X + tl.arange(0, 8)), 1)


@pytest.mark.parametrize(
    ("kernel", "text"),
    [
        (assembly_kernel, "inline_asm_elementwise is assembly of a GPU; write the operation"),
        (typed_kernel, "fp8e4b15"),
        (shaped_kernel, "incompatible"),
        (atomic_word_kernel, "Memory semantic seq_cst not supported"),
        (atomic_scope_kernel, "Memory semantic warp not supported"),
        (atomic_bits_kernel, "'or' of f32: a memory has it for i32, i64"),
        (atomic_narrow_kernel, "atomic_add does not support int8"),
        (atomic_wide_kernel, "the PE has no elements of type uint64"),
        (atomic_polling_kernel, "atomic_poll: the PE has no such operation"),
        (asserting_kernel, "device_assert: positive"),
        (branching_kernel, "a block of shape (8,) has no truth value: use tl.where"),
        (unsigned_kernel, "the PE has no elements of type uint64"),
        (narrow_kernel, "no elements of type int16: it has bf16, fp16"),
        (narrow_bits_kernel, "the bits of fp16 as those of int16: the PE has no integers of 16"),
        (gathered_kernel, "tl.load(pointer + indices) selects elements of memory"),
        (extern_kernel, "libdevice.tgamma is code of a GPU; known: abs, ceil"),
        (external_kernel, "extern_elementwise '__nv_tgammaf' of 'libdevice' is code of a GPU"),
        (scaled_dot_kernel, "multiply the operands by their scales, and use tl.dot"),
        (masked_block_kernel, "use boundary_check and padding_option"),
        (axes_kernel, "with 1, 2, 2 and 2 axes: they are as many"),
        (checked_kernel, "boundary_check (2,): the block has 2 axes"),
        (unaligned_kernel, "is no multiple of the 4 bytes of f32"),
        (flipped_kernel, "tl.flip along axis 1: the value has 1 axes"),
    ],
    ids=lambda each: getattr(getattr(each, "fn", None), "__name__", ""),
)
def test_what_the_pe_lacks_is_refused_with_the_nearest_thing(kernel: Any, text: str):
    error = problem(kernel)
    assert text in error.problem
    assert "test_errors.py" in error.line


def test_a_static_assertion_names_its_message():
    assert "static_assert: two" in problem(static_kernel, np.zeros(4, np.float32), N=3).problem


def test_a_line_of_a_program_is_printed_with_its_elements():
    @triton.jit
    def printing_kernel(X):
        x = tl.load(X + tl.program_id(0) * 4 + tl.arange(0, 4))
        tl.device_print("x", x * 2)

    def program(launches: Launches):
        given = launches.put(np.arange(8, dtype=np.float32))
        launches(printing_kernel, (2,), given)
        return [(given, np.arange(8), 0)]

    printed = run(program).simulation.prints
    assert [each.text for each in printed] == ["x: [0. 2. 4. 6.]", "x: [ 8. 10. 12. 14.]"]


def test_two_programs_that_store_one_element_are_refused():
    error = problem(
        copy_kernel, np.zeros(4096, np.float32), np.zeros(4096, np.float32), grid=(2,), BLOCK=8
    )
    assert "store other elements in each program" in error.problem


def test_a_kernel_outside_of_a_run_names_the_launch():
    connected()
    with pytest.raises(RuntimeError, match=r"copy_kernel\[grid\]"):
        copy_kernel(1, 2, 3)


def test_a_run_without_data_refuses_addresses_from_memory():
    from kernbench.simulation import simulate

    @triton.jit
    def gather_kernel(X, I):
        tl.load(X + tl.load(I + tl.arange(0, 8)))

    def main(rank: int) -> None:
        torch.launch(
            "gather",
            gather_kernel,
            torch.zeros(8, dtype=torch.float32),
            torch.zeros(8, dtype=torch.int32),
            grid=(1,),
        )

    with pytest.raises(KernelError, match="a run with --no-data has none"):
        simulate(main, 1, data=False)


@triton.jit
def outside_kernel(X):
    offs = tl.arange(0, 8)
    tl.atomic_add(X + offs * 1000, 1.0, mask=offs < 5)  # outside


def test_an_atomic_operation_outside_of_every_tensor_is_a_page_fault_with_its_mask():
    with pytest.raises(PageFaultError) as raised:
        launched(outside_kernel, np.zeros(8, np.float32))
    error = raised.value
    assert error.line.endswith(line_of("# outside"))
    assert error.tensor.endswith("; mask: 5 of 8 elements")


@triton.jit
def waiting_kernel(X):
    while tl.atomic_cas(X, 0, 1) == 1:
        pass


def test_a_program_that_spins_for_a_lock_which_none_opens_is_an_error(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr("kernbench.triton.builder.program.MOST_SPINS", 50)
    error = problem(waiting_kernel, np.ones(1, np.int32))
    assert "tl.atomic_cas has compared one element 50 times" in error.problem


@triton.jit
def mixed_kernel(X, ATOMIC: tl.constexpr):
    if ATOMIC or tl.program_id(0):
        tl.atomic_add(X, 1.0)
    else:
        tl.store(X, 1.0)


def test_a_store_and_an_atomic_operation_of_two_programs_are_a_conflict():
    def program(launches: Launches, is_atomic: bool):
        x = launches.spread(np.zeros(64, np.float32))
        launches(mixed_kernel, (4,), x, ATOMIC=is_atomic)
        return [(x, np.append(4.0, np.zeros(63)), 0)]

    with pytest.raises(KernelError, match="stores to elements 0:1 of tensor"):
        run(lambda launches: program(launches, is_atomic=False))
    assert run(lambda launches: program(launches, is_atomic=True)).error == 0
