"""Points in this process; tests/multiproc/test_points.py has those of point processes."""

import gc
from weakref import ref

import pytest

from kernbench.points.driver import PointOptions, measured_points
from kernbench.points.task import PointFault
from tests.support.points import NumberPoint, NumberRow, measurement, raising, squared

HERE = PointOptions(procs=1)


class _Machine:
    """Refers to itself, as the parts of a simulated machine do to each other."""

    def __init__(self) -> None:
        self.part = self


def test_what_a_point_leaves_in_memory_is_gone_before_the_next_one():
    left = []

    def measure(point: NumberPoint) -> NumberRow:
        left.append((ref(_Machine()), [machine() for machine, _ in left]))
        return squared(point)

    gc.disable()
    try:
        measured_points(measurement(measure), [NumberPoint(1), NumberPoint(2)], HERE)
    finally:
        gc.enable()
    assert [before for _, before in left] == [[], [None]]


def test_a_point_that_raises_is_a_fault_and_the_others_are_measured(
    capsys: pytest.CaptureFixture[str],
):
    points = [NumberPoint(number) for number in (2, 3, 4)]
    found = measured_points(measurement(raising), points, HERE)
    assert found == {
        points[0]: NumberRow(4, 2 / 3),
        points[1]: PointFault("number 3", "ValueError: three is too many"),
        points[2]: NumberRow(16, 4 / 3),
    }
    printed = capsys.readouterr().err
    assert "Traceback" in printed
    assert "2/3  number 3  FAULT: ValueError: three is too many" in printed


def test_an_equal_point_is_measured_once():
    measured = []

    def measure(point: NumberPoint) -> NumberRow:
        measured.append(point)
        return squared(point)

    found = measured_points(measurement(measure), [NumberPoint(5)] * 3, HERE)
    assert list(found) == measured == [NumberPoint(5)]


def test_ctrl_c_ends_the_measurement():
    def measure(point: NumberPoint) -> NumberRow:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        measured_points(measurement(measure), [NumberPoint(5)], HERE)
