"""Foreseen times of packets that leave a SIP: certain, never wrong, and checked."""

from collections.abc import Iterator, Sequence

import pytest

from runtime.core.errors import InvariantError
from runtime.core.simtime import NEVER_PS
from runtime.wire.frames import Message
from runtime.wire.packet_blocks import run_of
from sip_node.chip.chip import Chip, chip_spec
from sip_node.chip.fabric.packet import Kind
from sip_node.chip.ports.packet_runs import PacketRuns
from sip_node.chip.records.op_log import OpLog
from sip_node.pdes.engine import Engine
from tests.support.packets import lone_packet
from tests.support.topologies import small

SIZE = 4096
Times = list[tuple[int, int, int]]


class Leaving:
    """SIP 0 of two, whose PEs send packets to SIP 1 of another LP."""

    def __init__(self, *, foresees: bool = True) -> None:
        self.spec = chip_spec(small(system__sips__count=2), data=False)
        self.engine = Engine()
        self.chip = Chip(self.spec, 0, self.engine, OpLog(None))
        self.runs = PacketRuns(0, 1)
        self.chip.boundary.connect({1: self.runs})
        if foresees:
            self.chip.boundary.foresee()

    def sends(self, at_ps: Sequence[int]) -> "Leaving":
        for number, time_ps in enumerate(at_ps):
            pe = self.spec.graph.pe(number % self.spec.topology.cubes, 0)
            packet = lone_packet(Kind.IPCQ_CREDIT, (0, pe), (1, pe), SIZE)
            self.engine.at(time_ps, self.chip.fabric.send, packet, pe, time_ps)
        return self

    def known(self, before_ps: int) -> tuple[int, Times]:
        """Execute the events before a time: the bound then, and what has left or is foreseen."""
        self.engine.run_before(before_ps)
        base_ps = min(before_ps, self.engine.next_ps())
        launch_ps, known_ps = self.chip.send_bounds.earliest_send_ps(base_ps)
        bound_ps = min(launch_ps, known_ps.get(1, NEVER_PS))
        bound_ps = min(bound_ps, self.chip.send_bounds.foresee(bound_ps))
        return bound_ps, times_of(self.runs.take())


def times_of(messages: Iterator[tuple[int, Message]]) -> Times:
    found: Times = []
    for _, message in messages:
        run = run_of(message)
        found += zip(run.heads_ps, run.tails_ps, run.seqs, strict=True)
    return found


def test_packets_enter_their_messages_before_they_cross_with_the_times_of_a_run_without() -> None:
    starts = [0] * 12
    _, plain = Leaving(foresees=False).sends(starts).known(NEVER_PS)
    leaving = Leaving().sends(starts)
    early: Times = []
    for before_ps in range(20_000, 1_000_000, 20_000):
        bound_ps, messages = leaving.known(before_ps)
        assert all(head_ps >= before_ps for head_ps, _, _ in messages)
        early += messages
        crossed = leaving.chip.boundary.ports[0].nbytes // SIZE
        assert bound_ps >= before_ps
        if before_ps == 60_000:
            assert crossed < len(early)
    assert sorted(early) == sorted(plain)


def test_no_packet_leaves_before_the_bound() -> None:
    leaving = Leaving().sends([0, 0, 40_000, 41_000, 300_000, 300_000, 310_000, 2_000_000])
    lookahead_ps, bound_ps = 18_200, 0
    for before_ps in range(10_000, 2_500_000, 10_000):
        least_ps = bound_ps + lookahead_ps
        bound_ps, messages = leaving.known(before_ps)
        # A launch bounds what PEs begin to send; here packets appear from nowhere.
        bound_ps = min(bound_ps, before_ps)
        assert all(head_ps >= least_ps for head_ps, _, _ in messages)


def test_a_crossing_that_was_foreseen_wrongly_is_an_error() -> None:
    leaving = Leaving().sends([0] * 12)
    _, early = leaving.known(60_000)
    assert early
    leaving.chip.boundary.ports[0].free_ps += 1_000_000
    with pytest.raises(InvariantError, match="foreseen"):
        leaving.known(NEVER_PS)
