"""Launches of the mock runtime that are checked."""

import numpy as np
import pytest

from runtime.core.errors import FindingsError, KernelError
from runtime.language import mock, tl
from runtime.language.value import Pointer
from tests.support.mock_verdicts import launched, ring, zeros


def test_a_report_names_the_array_the_lines_and_the_remedy_and_has_no_times() -> None:
    def shifted(x: Pointer) -> None:
        own = x + tl.program_id(0) * 4
        before = tl.load(own - 1 if tl.program_id(0) else own, 1)
        tl.store(own, tl.load(own, 4) + before)

    with pytest.raises(FindingsError) as failed:
        mock.launch(shifted, zeros(8), pes=2, check=True)
    first, *lines = failed.value.reports.splitlines()
    assert first == "race: element 3 of tensor x (8,) f32"
    assert lines[0].endswith(" SIP 0 cube 0 PE 0, kernel shifted")
    assert lines[1].endswith(" SIP 0 cube 0 PE 1, kernel shifted")
    assert lines[2] == "  in common    the begin of the launch of shifted"
    assert lines[-1] == "check  shifted: 10 calls, 1 race, 0 undefined values"


def test_two_pes_that_store_to_one_element_are_a_race() -> None:
    def both(x: Pointer) -> None:
        tl.store(x, tl.full(4, 1.0, tl.float32))

    with pytest.raises(FindingsError, match=r"race: element 0 of tensor x"):
        mock.launch(both, zeros(4), pes=2, check=True)
    mock.launch(both, zeros(4), pes=1, check=True)


def test_the_arrays_have_the_elements_of_a_launch_without_the_check() -> None:
    def twice(value: tl.Value) -> tl.Value:
        return value * 2.0

    def doubled(x: Pointer, y: Pointer) -> None:
        block = tl.wait(tl.load_async(x, 8))
        tl.wait(tl.store_async(y, tl.fused(twice, block)))

    x, y = np.arange(8, dtype=np.float32), zeros(8)
    mock.launch(doubled, x, y, check=True)
    assert y.tolist() == (2 * x).tolist()


def test_the_end_of_scratch_waits_for_what_uses_its_values() -> None:
    def kernel(x: Pointer) -> None:
        with tl.scratch():
            tl.store_async(x, tl.full(4, 1.0, tl.float32))
        kept = tl.store_async(x + 4, tl.full(4, 1.0, tl.float32))
        tl.wait(kept)

    [rows] = launched(kernel, zeros(8)).calls().rows([1])
    operations = [row.operation for chunk in rows for row in chunk]
    assert operations == ["math full", "store_async", "wait", "math full", "store_async", "wait"]


def test_a_value_in_its_slots_is_apart_from_its_target() -> None:
    def kernel(x: Pointer) -> None:
        if tl.program_id(0) == 0:
            tl.send("E", tl.full(4, 1.0, tl.float32))
        if tl.program_id(0) == 1:
            target = tl.empty(4, tl.float32)
            kept = tl.wait(tl.recv_async("W", dst_addr=target, dst_space="tcm", in_place=True))
            assert kept is not None
            tl.store(x, kept * 2)
            tl.release(kept)
            tl.store(x, target * 2)

    with pytest.raises(FindingsError, match=r"undefined: element 0 of a value of tl\.empty"):
        mock.launch(kernel, zeros(4), pes=4, queues=ring(), check=True)


def test_errors_of_a_kernel_are_those_without_the_check() -> None:
    def kernel(x: Pointer) -> None:
        tl.store_async(x, tl.full(4, 1.0, tl.float32))
        tl.load(x, 4)

    texts = list[str]()
    for check in (False, True):
        with pytest.raises(KernelError) as failed:
            mock.launch(kernel, zeros(4), check=check)
        texts.append(str(failed.value))
    assert texts[0] == texts[1]
    assert "test_recorded_launch.py" in texts[0]


@pytest.mark.parametrize("right", [0, 1])
def test_barriers_of_a_cube_order_its_pes(right: int) -> None:
    def kernel(x: Pointer, y: Pointer) -> None:
        own, other = tl.program_id(0) + 2 * tl.program_id(1), 1 - tl.program_id(0)
        tl.store(x + own, tl.full(1, 1.0, tl.float32))
        if tl.program_id(1) == 0:
            tl.barrier("cube")
        tl.barrier() if right else None
        # The PEs of cube 0 are ordered by their barrier, and those of cube 1 by that of the launch.
        tl.store(y + own, tl.load(x + other, 1))

    launch = launched(kernel, zeros(4), zeros(4), cubes=2, pes=2)
    cubes = {(each.first.cube, each.second.cube) for each in launch.findings().races}
    assert cubes == (set() if right else {(0, 1)})
