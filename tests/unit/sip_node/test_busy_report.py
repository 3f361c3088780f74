from threading import Event

import pytest

from runtime.wire.control import RankActivity
from sip_node import busy_report
from sip_node.busy_report import busy_reports

WAIT_S = 10.0


@pytest.fixture(autouse=True)
def _short_period(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(busy_report, "PERIOD_S", 0.01)


def test_a_program_that_computes_is_reported_from_another_thread():
    sent, received = Event(), list[tuple[float, tuple[RankActivity, ...], bool]]()

    def send(stretch_s: float, ranks: tuple[RankActivity, ...], /, *, imports: bool) -> None:
        received.append((stretch_s, ranks, imports))
        sent.set()

    rank = RankActivity(0, 3.0, ())
    with busy_reports(lambda: 2.0, lambda: [rank], send):
        assert sent.wait(WAIT_S)
    assert received[0] == (2.0, (rank,), False)


def test_nothing_is_reported_while_no_program_computes():
    asked, received = Event(), list[tuple[float, bool]]()

    def stretch_s() -> float:
        asked.set()
        return 0.0

    def send(stretch_s: float, _: tuple[RankActivity, ...], /, *, imports: bool) -> None:
        received.append((stretch_s, imports))

    with busy_reports(stretch_s, list, send):
        assert asked.wait(WAIT_S)
    assert received == []
