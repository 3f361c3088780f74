"""Queues, links and kernels made wrong: `validate` names all checks of all-reduce concerned and no others."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from benches.validate.check import Check
from benches.validate.plan import missed, parts, run
from benches.validate.slot_rates import SLOT_BYTES, TOLERANCE
from runtime.ccl.algorithms import intercube, ring
from runtime.ccl.exchange import Ways
from runtime.language import tl
from runtime.language.value import Value
from runtime.requests import QueuePair
from sip_node.components.packet import Kind, Packet
from sip_node.components.pe_ipcq import PeIpcq
from sip_node.components.server import Server
from tests.support.topologies import default_text, variant_text

pytestmark = [pytest.mark.fidelity, pytest.mark.slow]

LATE_PS = 16_000
"""A round of 2 KiB, 167 ns in the file that ships, takes 199 ns then: the time of 12.5 slots on the link, so 12 are too few."""


def checks(text: str = default_text(), *, only: str = "i.", seed: int = 1) -> list[Check]:
    """What the checks under a prefix say, all run in this process."""
    chosen = [part for part in parts(seed, full=False) if part.may_match(only)]
    return run(text, chosen, only, procs=1)


def missed_ids(found: list[Check]) -> set[str]:
    return {check.id for check in missed(found)}


def ids(found: list[Check], *patterns: str) -> set[str]:
    """Those that start with the first part of a pattern and end with the second one; there is one at least for each."""
    chosen: set[str] = set()
    for pattern in patterns:
        start, _, end = pattern.partition("*")
        matching = {check.id for check in found if check.id.startswith(start) and check.id.endswith(end)}
        assert matching, pattern
        chosen |= matching
    return chosen


def with_queues(wrong: type[PeIpcq]) -> str:
    return variant_text(impl={"pe_ipcq": f"{__name__}:{wrong.__name__}"})


class LacksASlot(PeIpcq):
    """Never uses one slot of a ring, and thinks nothing of it."""

    def install(self, table: str, pairs: Sequence[QueuePair]) -> None:
        super().install(table, pairs)
        for queue in self.table(table).queues:
            queue.credits -= 1

    def check_idle(self) -> None:
        assert not any(queue.arrived for queue in self._queues)


class LosesACredit(PeIpcq):
    """The first credit that comes is lost."""

    lost = False

    def accept(self, packet: Packet, tail_ps: int) -> None:
        if packet.kind is Kind.IPCQ_CREDIT and not self.lost:
            self.lost = True
        else:
            super().accept(packet, tail_ps)


class Slow(PeIpcq):
    """Takes longer than the file says to handle an arrival or a credit."""

    def __init__(self, *around: Any) -> None:
        super().__init__(*around)
        self._overhead_ps += LATE_PS


class FatCredits(PeIpcq):
    """Credits of twice the size."""

    def install(self, table: str, pairs: Sequence[QueuePair]) -> None:
        super().install(table, pairs)
        for queue in self.table(table).queues:
            queue.pair = replace(queue.pair, credit_bytes=2 * queue.pair.credit_bytes)


def rates_below(found: list[Check], more_ps: int, fewer_slots: int = 0) -> set[str]:
    """Rates that the formula puts more than the tolerance lower for a longer round or a shorter ring."""
    rates = [check for check in found if check.id.startswith("i.rate.")]
    widest_gbs, round_ps = rates[-1].expected, SLOT_BYTES * 1000 / rates[0].expected
    lower: set[str] = set()
    for slots, check in enumerate(rates, 1):
        wrong_gbs = min(widest_gbs, (slots - fewer_slots) * SLOT_BYTES * 1000 / (round_ps + more_ps))
        if wrong_gbs < (1 - TOLERANCE) * check.expected:
            lower.add(check.id)
    return lower


def test_the_model_as_it_is_misses_nothing_whatever_is_drawn() -> None:
    assert not missed(checks())
    assert not missed(checks(only="i.drawn.", seed=8))


def test_a_ring_that_lacks_a_slot_is_seen_by_rates_that_need_it_and_by_the_credits_away() -> None:
    found = checks(with_queues(LacksASlot))
    # A ring of one has no slot then, and where messages are as large as a ring all ranks wait to send.
    endless = ids(found, "i.credit.", "i.ring.")
    assert missed_ids(found) == endless | rates_below(found, 0, fewer_slots=1) | ids(found, "i.drawn.*.home")


def test_a_lost_credit_breaks_a_law_of_the_model_and_every_check_says_which() -> None:
    found = checks(with_queues(LosesACredit), only="i.sums.") + checks(with_queues(LosesACredit), only="i.drawn.00")
    assert missed_ids(found) == {check.id for check in found}
    assert all("3 of 4 credits are home" in check.says for check in found)


def test_slow_handling_of_slots_is_seen_by_credit_rounds_and_by_all_that_waits_for_them() -> None:
    found = checks(with_queues(Slow))
    # Both ends of a round are late. Where the link is full, nobody waits for a slot.
    assert missed_ids(found) == ids(found, "i.credit.", "i.ring.time.") | rates_below(found, 2 * LATE_PS)


def test_a_narrow_link_between_sips_is_seen_by_all_times_of_what_passes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    right = Server.__init__

    def narrow(server: Server, name: str, bw_gbs: float) -> None:
        right(server, name, bw_gbs / 2 if name.startswith("ucie.sip") else bw_gbs)

    monkeypatch.setattr(Server, "__init__", narrow)
    found = checks()
    assert missed_ids(found) == ids(found, "i.rate.", "i.ring.time.", "i.ring.ratio.")


def test_a_kernel_that_does_nothing_takes_less_time_than_any_can(monkeypatch: pytest.MonkeyPatch) -> None:
    def idle(*_: object) -> None:
        pass

    monkeypatch.setattr(ring, "all_reduce", idle)
    found = checks(only="i.drawn.")
    concerned = ids(found, "i.drawn.*.least", "i.drawn.*.bytes", "i.drawn.*.sums")
    assert missed_ids(found) == {check.id for check in found if check.id in concerned and check.says.startswith("ring")}


def test_larger_credits_are_seen_on_every_link_that_they_pass() -> None:
    found = checks(with_queues(FatCredits))
    # Between the root cube and the IO chiplet both runs have as many credits.
    assert missed_ids(found) == ids(found, "i.credit.", "i.drawn.*.bytes", "i.cubes.row", "i.cubes.column")


def test_a_chunk_that_is_not_passed_on_is_seen_by_sums_bytes_and_times(monkeypatch: pytest.MonkeyPatch) -> None:
    def without_last_step(chunks: list[Value], position: int, ways: Ways) -> None:
        size, (behind, ahead) = len(chunks), ways
        for step in range(size - 2):
            outgoing, index = chunks[(position - step + 1) % size], (position - step) % size
            if outgoing.numel:
                tl.send(ahead, outgoing)
            if chunks[index].numel:
                chunks[index] = tl.recv(behind, chunks[index].shape, chunks[index].dtype)

    for algorithm in (ring, intercube):
        monkeypatch.setattr(algorithm, "ring_all_gather", without_last_step)
    found = checks()
    concerned = ids(found, "i.sums.", "i.drawn.*.sums", "i.drawn.*.bytes", "i.ring.time.", "i.ring.ratio.", "i.cubes.root")
    assert missed_ids(found) == concerned
