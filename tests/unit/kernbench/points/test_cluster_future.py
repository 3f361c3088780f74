from concurrent.futures import BrokenExecutor, CancelledError, Future

import pytest

from kernbench.points.cluster_future import LostWorkerError, cluster_future


def _translated(error: BaseException) -> BaseException:
    return BrokenExecutor("gone") if isinstance(error, CancelledError) else error


def _pair() -> tuple[Future, Future]:
    theirs = Future()
    return theirs, cluster_future(theirs, _translated)


def test_a_result_arrives():
    theirs, ours = _pair()
    theirs.set_result(3)
    assert ours.result() == 3


def test_an_exception_arrives_with_its_type():
    theirs, ours = _pair()
    theirs.set_exception(LostWorkerError("killed", 4))
    with pytest.raises(LostWorkerError, match="killed") as raised:
        ours.result()
    assert raised.value.tries == 4


def test_a_cancellation_reaches_the_engine():
    theirs, ours = _pair()
    assert ours.cancel()
    assert theirs.cancelled()
    with pytest.raises(CancelledError):
        ours.result()


def test_a_task_that_runs_there_can_be_abandoned_here():
    theirs, ours = _pair()
    assert theirs.set_running_or_notify_cancel()
    assert ours.cancel()
    theirs.set_result(3)
    assert ours.cancelled()


def test_a_cancellation_by_the_engine_is_an_exception():
    theirs, ours = _pair()
    theirs.cancel()
    theirs.set_running_or_notify_cancel()
    with pytest.raises(BrokenExecutor, match="gone"):
        ours.result()
