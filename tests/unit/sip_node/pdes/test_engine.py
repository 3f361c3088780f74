from collections.abc import Generator

import pytest
import simpy

from runtime.core.compiled.choice import IS_COMPILED
from runtime.core.simtime import NEVER_PS
from sip_node.kernel.calendar import ARRIVALS_FIRST, NORMAL
from sip_node.pdes.engine import Engine
from tests.support.interpreted import interpreted

Interpreted = interpreted("sip_node.kernel.calendar").Calendar


@pytest.fixture(params=[Engine, Interpreted] if IS_COMPILED else [Engine])
def engine(request: pytest.FixtureRequest) -> Engine:
    return request.param()


def test_calls_run_in_the_order_of_their_times(engine: Engine) -> None:
    order: list[int] = []
    for time_ps in (30, 10, 20):
        engine.at(time_ps, order.append, time_ps)
    assert engine.run_before(NEVER_PS) == engine.events == 3
    assert order == [10, 20, 30]


def test_calls_at_one_time_run_in_the_order_of_scheduling(engine: Engine) -> None:
    order: list[str] = []
    for name in "abc":
        engine.at(5, order.append, name)
    engine.run_before(NEVER_PS)
    assert order == ["a", "b", "c"]


def test_arrivals_precede_everything_local_at_their_time(engine: Engine) -> None:
    order: list[str] = []
    engine.at(5, order.append, "local")
    engine.at(5, order.append, "arrival", priority=ARRIVALS_FIRST)
    engine.at(4, order.append, "before")
    engine.run_before(NEVER_PS)
    assert order == ["before", "arrival", "local"]


def test_the_bound_itself_is_not_executed(engine: Engine) -> None:
    order: list[int] = []
    for time_ps in (9, 10):
        engine.at(time_ps, order.append, time_ps)
    assert engine.run_before(10) == 1
    assert (order, engine.next_ps()) == ([9], 10)


def test_events_beyond_a_number_are_left_in_their_order(engine: Engine) -> None:
    order: list[str] = []
    for time_ps in (7, 7, 8):
        engine.at(time_ps, order.append, f"call at {time_ps}")
        engine.timeout(time_ps).callbacks.append(lambda _: order.append("of SimPy"))
    executed = [engine.run_before(9, 2) for _ in range(4)]
    assert (executed, engine.events, engine.next_ps()) == ([2, 2, 2, 0], 6, NEVER_PS)
    assert order == ["call at 7", "of SimPy", "call at 7", "of SimPy", "call at 8", "of SimPy"]


def test_new_events_before_the_bound_are_executed_too(engine: Engine) -> None:
    times: list[int] = []

    def again() -> None:
        times.append(engine.now_ps)
        engine.at(engine.now_ps + 4, again)

    engine.at(0, again)
    engine.run_before(10)
    assert (times, engine.next_ps()) == ([0, 4, 8], 12)


def test_a_call_may_schedule_a_call_for_the_same_time(engine: Engine) -> None:
    times: list[int] = []
    engine.at(7, lambda: engine.at(7, lambda: times.append(engine.now_ps)))
    engine.run_before(8)
    assert times == [7]


def test_the_next_event_of_an_empty_queue_is_never(engine: Engine) -> None:
    assert engine.next_ps() == NEVER_PS
    assert engine.run_before(NEVER_PS) == 0


def test_a_call_cannot_be_scheduled_in_the_past(engine: Engine) -> None:
    engine.at(10, lambda: engine.at(9, print))
    with pytest.raises(AssertionError, match="at 9 ps, now is 10 ps"):
        engine.run_before(NEVER_PS)


def test_an_error_in_a_call_is_raised_unchanged(engine: Engine) -> None:
    error = LookupError("in an event")

    def fail() -> None:
        raise error

    engine.at(1, fail)
    with pytest.raises(LookupError) as raised:
        engine.run_before(NEVER_PS)
    assert raised.value is error


def test_simpy_processes_and_calls_share_one_queue_and_one_order(engine: Engine) -> None:
    seen: list[tuple[str, int]] = []

    def steps() -> Generator[simpy.Event, None, None]:
        yield engine.timeout(5)
        seen.append(("process", engine.now_ps))
        yield engine.timeout(5)
        seen.append(("process", engine.now_ps))

    engine.process(steps())
    engine.at(5, lambda: seen.append(("call", engine.now_ps)))
    engine.at(7, lambda: seen.append(("call", engine.now_ps)))
    engine.run()
    # The process scheduled its timeout when it started, at 0, after the call was scheduled.
    assert seen == [("call", 5), ("process", 5), ("call", 7), ("process", 10)]


def test_a_step_of_an_empty_queue_is_an_error_of_simpy(engine: Engine) -> None:
    with pytest.raises(simpy.core.EmptySchedule):
        engine.step()
    assert engine.peek() == simpy.core.Infinity


def test_a_process_reads_the_time_of_the_call_that_creates_it(engine: Engine) -> None:
    times: list[float] = []

    def steps() -> Generator[simpy.Event, None, None]:
        times.append(engine.now)
        yield engine.timeout(2)
        times.append(engine.now)

    engine.at(5, lambda: engine.process(steps()))
    engine.run_before(NEVER_PS)
    assert times == [5, 7]


def test_a_delay_that_is_no_integer_is_refused(engine: Engine) -> None:
    with pytest.raises(TypeError, match=r"a delay of 2\.5 ps: simulated time is an int"):
        engine.timeout(2.5)


def test_running_until_a_time_leaves_the_events_of_that_time(engine: Engine) -> None:
    seen = list[int]()
    engine.at(3, seen.append, 3)
    engine.run(until=3)
    assert (seen, engine.next_ps()) == ([], 3)
    engine.run_before(4)
    assert seen == [3]


def test_simpy_has_the_private_queue_that_the_engine_shares() -> None:
    """See docs/adr/0013: a SimPy release that changes its queue must fail here, not in a result."""
    environment = simpy.Environment()
    timeout = environment.timeout(5)
    queue = getattr(environment, "_queue", None)
    ids = getattr(environment, "_eid", None)
    broken = f"SimPy {simpy.__version__} changed its private event queue, which Engine shares: "
    assert isinstance(queue, list), broken + f"Environment._queue is {queue!r}"
    assert queue == [(5, NORMAL, 0, timeout)], broken + f"its entries are {queue!r}"
    assert ids is not None, broken + "Environment._eid is gone"
    assert next(ids) == 1, broken + "Environment._eid does not number the entries"
    environment.step()
    assert getattr(environment, "_now", None) == 5, broken + "Environment._now is not the time"
    assert NORMAL == simpy.events.NORMAL > simpy.events.URGENT > ARRIVALS_FIRST, broken


def test_an_event_beyond_the_end_of_time_is_refused(engine: Engine) -> None:
    engine.at(NEVER_PS - 1, engine.timeout, 0)
    with pytest.raises(OverflowError, match=f"an event at {NEVER_PS} ps: a run ends before"):
        engine.at(NEVER_PS, print)
    with pytest.raises(OverflowError, match=f"an event at {NEVER_PS} ps: a run ends before"):
        engine.timeout(NEVER_PS)
    assert engine.run_before(NEVER_PS) == 2
    with pytest.raises(OverflowError, match=f"an event at {NEVER_PS} ps: a run ends before"):
        engine.timeout(1)
