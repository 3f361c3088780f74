"""The lines of progress, and the estimate of what remains."""

import io

import pytest

from kernbench.points import progress
from kernbench.points.progress import duration, point_progress
from tests.support.points import NumberPoint


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr(progress, "now_s", lambda: now[0])
    return now


def test_a_line_counts_the_points_of_an_earlier_start_and_estimates_by_cost(clock: list[float]):
    stream = io.StringIO()
    points = [NumberPoint(1, cost=30), NumberPoint(2, cost=10)]
    with point_progress(points, 3, "numbers", stream) as shown:
        # 30 of 40 took a minute, so the other 10 take 20 s.
        clock[0] += 60
        shown.completed(points[0], "square 1")
        shown.completed(points[1], "square 4")
    assert stream.getvalue() == (
        "4/5  number 1  square 1  about 20 s left\n5/5  number 2  square 4\n"
    )


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (119, "119 s"), (120, "2 min"), (7199, "120 min"), (7200, "2 h"), (1e6, "278 h")],
)
def test_a_duration_has_at_least_two_of_its_unit(seconds: float, text: str):
    assert duration(seconds) == text


def test_on_a_terminal_the_bar_is_erased_and_notes_remain(clock: list[float]):
    stream = _Terminal()
    with point_progress([NumberPoint(1)], 0, "numbers", stream) as shown:
        shown.note("number 1: [bold]as it is")
        shown.completed(NumberPoint(1), "square 1")
    assert "number 1: [bold]as it is" in stream.getvalue()
    # The bar erases its line when it stops.
    assert stream.getvalue().rstrip("\n").endswith("\x1b[2K")
