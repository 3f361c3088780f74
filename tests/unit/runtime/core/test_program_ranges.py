"""The named ranges of a program have the times of its commands."""

from runtime.core.device import Handle
from runtime.core.program_ranges import MOST_RANGES, ProgramRange, ProgramRanges


def command(released_ps: int, done_ps: int, stream: int = 0) -> Handle:
    return Handle((), 0, stream=stream, done=True, released_ps=released_ps, device_done_ps=done_ps)


def test_a_range_lasts_from_its_first_to_its_last_command_in_all_streams():
    ranges = ProgramRanges()
    ranges.submitted(command(0, 1))
    ranges.begin("a step", 5)
    for each in (command(20, 30), command(40, 50), command(10, 90, stream=1)):
        ranges.submitted(each)
    ranges.end(6)
    ranges.submitted(command(90, 100))
    assert ranges.complete() == [ProgramRange("a step", 10, 90)]


def test_a_range_has_the_commands_of_the_ranges_in_it():
    ranges = ProgramRanges()
    ranges.begin("outer", 0)
    ranges.submitted(command(10, 20))
    ranges.begin("inner", 0)
    ranges.submitted(command(30, 40))
    ranges.end(0)
    ranges.end(0)
    assert ranges.complete() == [ProgramRange("inner", 30, 40), ProgramRange("outer", 10, 40)]


def test_without_commands_it_has_the_time_of_the_program():
    ranges = ProgramRanges()
    ranges.begin("waits", 7)
    ranges.end(9)
    assert ranges.complete() == [ProgramRange("waits", 7, 9)]


def test_the_time_of_a_command_counts_when_it_is_complete():
    ranges, running = ProgramRanges(), Handle((), 0)
    ranges.begin("a step", 0)
    ranges.submitted(running)
    ranges.end(0)
    running.done, running.released_ps, running.device_done_ps = True, 3, 8
    assert ranges.complete() == [ProgramRange("a step", 3, 8)]


def test_a_long_program_has_its_first_ranges():
    ranges = ProgramRanges()
    for at in range(MOST_RANGES + 1):
        ranges.begin(str(at), at)
        ranges.end(at)
    assert len(ranges.complete()) == MOST_RANGES
    assert ranges.complete()[-1].name == str(MOST_RANGES - 1)
