"""The steps of a program, and the lines of its kernel."""

from collections.abc import Callable
from typing import Any, NamedTuple, cast

import pytest

from runtime.core.coordinates import PeCoordinates
from runtime.core.run_tables import NONE, PROGRAMS, STEPS, Cause
from runtime.core.trace import OpRecord
from sip_node.chip.records.op_log import OpLog
from sip_node.pdes.engine import Engine
from sip_node.programs.program import Steps
from sip_node.programs.program_steps import (
    RANK_THREAD,
    Issued,
    ProgramOrigin,
    ProgramSteps,
    issued,
)
from tests.support.recorded import Recorded

LANGUAGE = """
def load(steps, *rest):
    return inner(steps, *rest)

def inner(steps, *rest):
    return steps.steps_of(steps.new_step(), *rest)

def synchronize(steps, *rest):
    return (yield from steps.rank_step(*rest))
"""
"""A call of the language, which is between a kernel and its steps, and a call of a device."""


class Pair(NamedTuple):
    peer: PeCoordinates


class Recording:
    """A program on PE 3 of cube 2 of a SIP with a clock that tests set."""

    def __init__(self) -> None:
        self.recorded, self.engine = Recorded(), Engine()
        self.log = OpLog(None, recorder=self.recorded.recorder)
        origin = ProgramOrigin("add", "kernels", cube=2, pe=3, command=7, line="bench.py:5")
        self.steps = ProgramSteps(self.engine, self.log, origin)

    def sleep(self, until_ps: int, value: object = None) -> object:
        self.engine.now_ps = until_ps
        return value

    def step(self, blocked: Issued, issue_ps: int, sleep: Callable[..., object], *args: Any) -> Any:
        """The result of a wait in which the loop calls `sleep(*args)`."""
        call = cast("Any", sleep), args
        return carried_out(self.steps.steps_of(self.steps.new_step(), blocked, "", issue_ps, call))

    @property
    def rows(self) -> list[dict[str, Any]]:
        self.log.flush()
        return self.recorded.rows(STEPS)


def carried_out(steps: Steps[Any]) -> Any:
    """The result of steps whose calls return values, and not completions."""
    try:
        call = next(steps)
        while True:
            assert call is not None
            start, args = call
            try:
                value = start(*args)
            except Exception as error:  # noqa: BLE001 - raised where the steps wait
                call = steps.throw(error)
            else:
                call = steps.send(value)
    except StopIteration as end:
        return end.value


@pytest.fixture
def recording() -> Recording:
    return Recording()


def language(module: str, call: str = "load") -> Callable[..., Steps[Any]]:
    """A call of a module with this name."""
    found: dict[str, Any] = {"__name__": module}
    exec(compile(LANGUAGE, "language.py", "exec"), found)
    return found[call]


def test_a_step_has_the_cost_of_its_command_its_cause_and_what_ended_it(
    recording: Recording,
) -> None:
    steps, log = recording.steps, recording.log
    steps.scratch_bytes = lambda: 4096

    def ends(now_ps: int, value: str) -> object:
        log.add(OpRecord("pe_dma", "load", 50, now_ps, 2, 3))
        return recording.sleep(now_ps, value)

    assert recording.step(Issued("load", Cause.OPERAND), 40, ends, 90, "value") == "value"
    recording.step(Issued("store", Cause.OPERAND), 10, recording.sleep, 100)
    first, second = recording.rows
    assert (first["step"], first["program"], first["operation"]) == (0, 1, "load")
    assert (first["begin_ps"], first["issued_ps"], first["end_ps"]) == (0, 40, 90)
    assert (first["cause"], first["released_by"], first["scratch_bytes"]) == ("operand", 0, 4096)
    assert (first["direction"], first["peer_sip"], first["peer_cube"]) == ("", -1, -1)
    # No longer than its command: it waited for nothing.
    assert (second["step"], second["cause"], second["released_by"]) == (1, "", -1)


def test_the_peer_is_that_of_the_direction_and_a_barrier_is_released_by_no_operation(
    recording: Recording,
) -> None:
    steps = recording.steps
    steps.pair_of = lambda direction: Pair(PeCoordinates(len(direction), 5, 6))
    recording.step(Issued("send", Cause.CREDIT, "E"), 0, recording.sleep, 10)
    recording.log.add(OpRecord("pe_dma", "load", 10, 20, 2, 3))
    recording.step(Issued("barrier", Cause.PEER), 0, recording.sleep, 20)
    send, barrier = recording.rows
    assert (send["direction"], send["cause"]) == ("E", "credit")
    assert (send["peer_sip"], send["peer_cube"], send["peer_pe"]) == (1, 5, 6)
    assert (barrier["cause"], barrier["released_by"]) == ("peer", -1)
    # And it has no direction, so no peer.
    assert (barrier["direction"], barrier["peer_sip"], barrier["peer_pe"]) == ("", -1, -1)
    assert (send["scratch_bytes"], barrier["scratch_bytes"]) == (0, 0)


@pytest.mark.parametrize(
    ("end_ps", "cube", "pe", "released_by"),
    [(20, 2, 3, 0), (20, 2, 4, -1), (20, 1, 3, -1), (19, 2, 3, -1)],
)
def test_a_step_is_ended_by_an_operation_of_its_pe_that_ends_with_it(
    recording: Recording, end_ps: int, cube: int, pe: int, released_by: int
) -> None:
    recording.log.add(OpRecord("pe_dma", "load", 10, end_ps, cube, pe))
    recording.step(Issued("load", Cause.OPERAND), 0, recording.sleep, 20)
    assert [row["released_by"] for row in recording.rows] == [released_by]


def test_a_call_without_duration_is_no_step_and_keeps_its_number(recording: Recording) -> None:
    for until_ps in (0, 5):
        recording.step(Issued("wait", Cause.ENGINE), 0, recording.sleep, until_ps)
    assert [row["step"] for row in recording.rows] == [1]


def test_a_command_without_cost_is_a_step_since_it_may_have_issued_operations(
    recording: Recording,
) -> None:
    steps = recording.steps
    step = steps.new_step()
    # An event carries out the call of a command.
    command = steps.steps_of(step, Issued("load_async", Cause.OPERAND), "", 0, None)
    assert next(command) is None
    with pytest.raises(StopIteration):
        command.send(None)
    (row,) = recording.rows
    assert (row["step"], row["begin_ps"], row["end_ps"]) == (step, 0, 0)
    assert (row["cause"], row["released_by"]) == (Cause.NONE, NONE)


def test_what_a_call_starts_is_issued_by_its_step(recording: Recording) -> None:
    steps, log = recording.steps, recording.log

    def start(name: str) -> object:
        return name, log.step

    first, second = steps.new_step(), steps.new_step()
    calls = [steps.issued_by(each, (cast("Any", start), ("load",))) for each in (second, first)]
    assert [begin(*args) for begin, args in calls] == [("load", second), ("load", first)]


def test_the_line_is_that_of_the_kernel_outside_of_the_language_or_the_given_one(
    recording: Recording,
) -> None:
    load = language("runtime.language.memory")
    blocked, own = Issued("load", Cause.OPERAND), language("kernel_of_a_user")
    for until_ps in (1, 2):
        carried_out(load(recording.steps, blocked, "", 0, (recording.sleep, (until_ps,))))
    carried_out(load(recording.steps, blocked, "", 0, (recording.sleep, (3,))))
    carried_out(own(recording.steps, blocked, "", 0, (recording.sleep, (4,))))
    carried_out(load(recording.steps, blocked, "given.py:9", 0, (recording.sleep, (5,))))
    *found, given = [row["line"] for row in recording.rows]
    assert given == "given.py:9"
    lines = [line.rpartition(":") for line in found]
    first, second, third, other = (int(line) for _, _, line in lines)
    assert first == second == third - 1
    assert lines[0][0].endswith("test_program_steps.py")
    assert (lines[3][0].endswith("language.py"), other) == (True, 6)


def test_an_error_ends_the_step_and_the_deletion_of_a_program_does_not(
    recording: Recording,
) -> None:
    def fails(error: type[BaseException]) -> None:
        recording.sleep(recording.engine.now_ps + 7)
        raise error

    for error in (ValueError, GeneratorExit, ValueError):
        with pytest.raises(error):
            recording.step(Issued("load", Cause.OPERAND), 0, fails, error)
    assert [(row["begin_ps"], row["end_ps"]) for row in recording.rows] == [(0, 7), (14, 21)]


def test_a_step_of_the_rank_program_is_the_call_of_its_device_with_a_cause(
    recording: Recording,
) -> None:
    origin = ProgramOrigin("program", RANK_THREAD)
    steps = ProgramSteps(recording.engine, recording.log, origin)
    synchronize = language("runtime.device", "synchronize")
    carried_out(synchronize(steps, Cause.COMMAND, 3, (recording.sleep, (8,))))
    (row,) = recording.rows
    assert (row["program"], row["operation"], row["cause"]) == (0, "synchronize", "command")
    assert (row["begin_ps"], row["issued_ps"], row["end_ps"]) == (0, 3, 8)
    assert row["line"].rpartition(":")[0].endswith("test_program_steps.py")


@pytest.mark.parametrize(
    ("operation", "cause"),
    [
        ("load", Cause.OPERAND),
        ("store", Cause.OPERAND),
        ("gather", Cause.OPERAND),
        ("barrier", Cause.PEER),
        ("recv", Cause.SLOT),
        ("dot", Cause.ENGINE),
    ],
)
def test_a_command_waits_for_its_memory_its_peers_or_an_engine(operation: str, cause: str) -> None:
    assert issued(operation) == Issued(operation, cause)


def test_more_steps_than_fit_into_a_block_arrive_in_their_order(recording: Recording) -> None:
    for until_ps in range(1, 3001):
        recording.step(Issued("load", Cause.OPERAND), 0, recording.sleep, until_ps)
    assert [row["end_ps"] for row in recording.rows] == list(range(1, 3001))


def test_a_program_that_ends_or_fails_has_a_row_and_one_that_is_deleted_has_none(
    recording: Recording,
) -> None:
    with recording.steps:
        recording.sleep(30)
    for until_ps, error in ((40, GeneratorExit), (50, ValueError)):
        recording.sleep(until_ps)
        with pytest.raises(error), recording.steps:
            raise error
    row, failed = recording.recorded.rows(PROGRAMS)
    assert failed == row | {"end_ps": 50}
    assert (row["program"], row["cube"], row["pe"], row["kernel"]) == (1, 2, 3, "add")
    assert (row["line"], row["begin_ps"], row["end_ps"]) == ("bench.py:5", 0, 30)
