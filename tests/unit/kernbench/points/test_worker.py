"""Point processes end with what holds them."""

import warnings

from kernbench.points.worker import PointProcess


def test_a_point_process_that_nothing_holds_is_ended_and_its_output_closed() -> None:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always", ResourceWarning)
        process = PointProcess()
        assert process.is_running
        # CPython warns of a child that still runs, and of a file that is open.
        del process
    assert seen == []
