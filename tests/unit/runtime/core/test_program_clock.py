import pytest

from runtime.core import program_clock
from runtime.core.program_clock import ProgramClock


def test_the_clock_runs_while_the_program_does(monkeypatch: pytest.MonkeyPatch):
    now = [100.0]
    monkeypatch.setattr(program_clock, "now_s", lambda: now[0])
    clock = ProgramClock()
    assert (clock.stretch_s, clock.total_s) == (0.0, 0.0)
    clock.enter()
    now[0] = 103.0
    assert (clock.stretch_s, clock.total_s) == (3.0, 3.0)
    clock.leave()
    now[0] = 110.0
    assert (clock.stretch_s, clock.total_s) == (0.0, 3.0)
    clock.enter()
    now[0] = 111.0
    assert (clock.stretch_s, clock.total_s) == (1.0, 4.0)
