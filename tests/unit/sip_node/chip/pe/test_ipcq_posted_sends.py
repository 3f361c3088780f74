"""The begin of a posted send: with its receive, and one after the other."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from runtime.core.coordinates import PeCoordinates
from runtime.core.errors import InvariantError, TransferMismatchError
from runtime.core.requests import Transfer
from sip_node.chip.fabric.packet import Kind
from sip_node.chip.kernel import ProgramRaised
from sip_node.chip.pe.ipcq import PostedSends
from tests.support.packets import lone_packet


class Bench:
    """Posted sends of PE 0 of SIP 0; `begun` are the messages whose sends have begun."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.events: list[Callable[[], None]] = []
        engine = SimpleNamespace(now_ps=0, at=lambda _, call: self.events.append(call))
        context = SimpleNamespace(engine=engine, coordinates=PeCoordinates(0, 0, 0))
        self.sends = PostedSends(cast("Any", context))

    def post(self, call: str, elements: str = "4 elements") -> None:
        transfer = Transfer(
            end="send",
            direction="global_rank_1",
            peer=1,
            elements=elements,
            begin=0,
            stop=16,
            tag=0,
            function="isend",
            line="s.py:1",
        )
        self.sends.post(call, transfer, lambda: self.begun.append(call))

    def ready(self, call: str, elements: str = "4 elements") -> None:
        said = f"{call}: {elements}, at r.py:2"
        notice = lone_packet(Kind.IPCQ_READY, (1, 0), (0, 0), 16, call=said)
        self.sends.ready(notice)

    def end(self) -> None:
        self.sends.ended()
        for event in self.events:
            event()
        self.events.clear()


def test_a_send_begins_when_both_ends_are_posted_in_either_order() -> None:
    bench = Bench()
    bench.post("a")
    bench.ready("b")
    assert bench.begun == []
    bench.ready("a")
    bench.end()
    bench.post("b")
    assert bench.begun == ["a", "b"]


def test_sends_begin_one_after_the_other_in_the_order_in_which_they_become_eligible() -> None:
    bench = Bench()
    for call in "abc":
        bench.post(call)
    for call in "cab":
        bench.ready(call)
    assert bench.begun == ["c"]
    bench.end()
    assert bench.begun == ["c", "a"]
    bench.end()
    bench.end()
    assert bench.begun == ["c", "a", "b"]


def test_the_next_send_begins_in_an_event_of_its_own() -> None:
    bench = Bench()
    for call in "ab":
        bench.post(call)
        bench.ready(call)
    bench.sends.ended()
    assert bench.begun == ["a"]


@pytest.mark.parametrize("send_first", [True, False])
def test_a_receive_of_other_elements_ends_the_run_with_both_descriptions(send_first: bool) -> None:
    bench = Bench()
    ends = [lambda: bench.post("a"), lambda: bench.ready("a", "5 elements")]
    first, second = ends if send_first else reversed(ends)
    first()
    with pytest.raises(ProgramRaised) as raised:
        second()
    calls = ("a: 4 elements, at s.py:1", "a: 5 elements, at r.py:2")
    mismatch = TransferMismatchError(0, calls[0], 1, calls[1])
    assert str(mismatch) in str(raised.value)
    assert bench.begun == []


def test_a_receive_without_a_send_breaks_a_law_at_the_end() -> None:
    bench = Bench()
    bench.ready("a")
    with pytest.raises(InvariantError, match="a receive is posted that has no send: a"):
        bench.sends.check_idle()
    bench.post("a")
    bench.sends.check_idle()
