"""Page faults, full scratch, and errors of kernels: message, source line, exception type."""

import re
from collections.abc import Callable

import numpy as np
import pytest

from kernbench import mock, tl
from runtime.core.errors import KernelError, PageFaultError
from runtime.language.caller import kernel_line
from runtime.language.value import Pointer, Value
from tests.support.kernels import refused

F32 = tl.float32


def zeros(*shape: int) -> Value:
    return tl.zeros(shape, F32)


def test_the_error_of_full_scratch_has_the_bytes_in_use_and_the_bytes_needed() -> None:
    def fill() -> None:
        tl.zeros(1 << 17, F32)
        tl.zeros(1 << 18, F32)

    assert refused(fill) == (
        "kernel scratch is full: 524,288 of 1,048,576 bytes are in use and 1,048,576 more are "
        "needed; free values with `with tl.scratch():`"
    )


def fault(kernel: Callable[..., object], *arrays: np.ndarray) -> PageFaultError:
    with pytest.raises(PageFaultError) as raised:
        mock.launch(kernel, *arrays)
    return raised.value


def test_a_page_fault_names_the_nearest_array_and_the_distance_to_it() -> None:
    x, y = np.zeros((2, 3), np.float16), np.zeros(5, np.int32)
    inside = fault(lambda x, y: tl.load(x + 4, 3), x, y)
    assert (inside.address, inside.nbytes) == (0x1_0000_0008, 6)
    assert (
        inside.tensor
        == "it starts inside array x (2, 3) f16 at 0x100000000+12 and runs past its end"
    )
    assert (
        fault(lambda x, y: tl.load(y + 6, 1), x, y).tensor
        == "4 bytes past the end of array y (5,) i32 at 0x100002000+20"
    )
    assert fault(lambda x, y: tl.load(x - 1, 1), x, y).tensor == "no array is mapped below it"
    assert fault(lambda x, y: tl.store(y, tl.zeros(6, tl.int32)), x, y).nbytes == 24


def test_a_block_whose_last_row_ends_outside_is_a_page_fault() -> None:
    x = np.zeros((3, 4), np.float32)
    assert fault(lambda x: tl.load(x + 1, (3, 4), strides=(4, 1)), x).nbytes == 48
    assert fault(lambda x: tl.dot(tl.ref(x, (4, 4)), tl.zeros((4, 4), F32)), x).nbytes == 64
    assert fault(lambda x: tl.recv(None, 2, F32, dst_addr=x + 11), x).nbytes == 8


def test_the_message_of_an_error_has_kernel_coordinates_and_line() -> None:
    def offset_by_cube(x: Pointer) -> None:
        if tl.program_id(1) == 1 and tl.program_id(0) == 2:
            tl.load(x, 99)

    with pytest.raises(PageFaultError) as raised:
        mock.launch(offset_by_cube, np.zeros((4, 4), np.float32), cubes=2, pes=4)
    assert re.fullmatch(
        r"page fault in kernel 'offset_by_cube' on sip 0 cube 1 pe 2 at "
        r"tests/unit/runtime/language/test_tl_faults\.py:\d+: "
        r"396 bytes at virtual address 0x100000000 are not mapped "
        r"\(it starts inside array x \(4, 4\) f32 .*\)",
        str(raised.value),
    )


def test_the_line_is_the_kernels_own_also_below_functions_that_it_calls() -> None:
    lines: list[str] = []

    def inner() -> None:
        lines.append(kernel_line())

    mock.launch(inner)
    assert lines == [
        f"tests/unit/runtime/language/test_tl_faults.py:{inner.__code__.co_firstlineno + 1}"
    ]


def test_an_exception_raised_by_the_kernel_itself_is_unchanged() -> None:
    with pytest.raises(ZeroDivisionError):
        mock.launch(lambda: 1 // 0)
    with pytest.raises(TypeError, match="int"):
        mock.launch(lambda: int([]))
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        mock.launch(lambda x: None)


def test_a_kernel_sees_the_python_exception_and_its_caller_the_kernel_error() -> None:
    def handled() -> None:
        with pytest.raises(ValueError, match="do not broadcast"):
            zeros(2) + zeros(3)

    mock.launch(handled)
    with pytest.raises(KernelError) as raised:
        mock.launch(lambda: zeros(2) + zeros(3))
    assert isinstance(raised.value.__cause__, ValueError)


@pytest.mark.parametrize(
    ("array", "problem"),
    [
        (np.zeros(3, np.complex64), "x: dtype complex64 does not exist on this hardware"),
        (
            np.zeros((3, 3), np.float32).T[1:],
            "x: an array of shape (2, 3) with strides (4, 12) is not contiguous",
        ),
    ],
)
def test_an_array_that_no_pointer_can_reach_is_refused(array: np.ndarray, problem: str) -> None:
    with pytest.raises((TypeError, ValueError), match=re.escape(problem)):
        mock.launch(lambda x: None, array)


def test_an_array_that_is_read_only_is_not_stored_to() -> None:
    x = np.zeros(3, np.float32)
    x.flags.writeable = False
    assert "read-only" in refused(lambda x: tl.store(x, zeros(3)), x)


@pytest.mark.parametrize(("cubes", "pes"), [(0, 1), (1, 0), (-1, 1)])
def test_a_kernel_runs_on_at_least_one_pe(cubes: int, pes: int) -> None:
    with pytest.raises(ValueError, match="at least one PE"):
        mock.launch(lambda: None, cubes=cubes, pes=pes)
