"""Mutants of repeated collectives: what is not compared, and what is not left behind.

A run in which collectives are repeated must be one without, so tests compare both.
"""

from tests.mutants.mutant import Mutant

EVENTS = "sip_node/chip/exchanges/events_on_way.py"
HELD = "sip_node/chip/exchanges/held_chips.py"
LEARNED = "sip_node/chip/exchanges/learned_exchange.py"
EXCHANGES_OF_LP = "sip_node/chip/exchanges/exchanges.py"
MEMBER = "sip_node/chip/exchanges/exchange_member.py"
RINGS = "sip_node/chip/exchanges/ring_slots.py"
TEMPLATE = "sip_node/chip/exchanges/exchange_template.py"

EXCHANGES = "tests/integration/test_exchanges.py"
TEST_SLOTS = "tests/unit/sip_node/chip/exchanges/test_ring_slots.py"

MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        name="collective-repeated-while-a-rank-waits",
        file=EVENTS,
        old="        or host.is_awaited(transfer.tag)\n",
        new="",
        breaks="A rank that waits for an answer goes on when it comes.",
        noticed_by=EXCHANGES,
        with_core=True,
    ),
    Mutant(
        name="collective-repeated-wherever-answers-are",
        file=EVENTS,
        old="        super().__init__(place, after_ps, step, tail_after_ps)\n",
        new="        super().__init__(place, after_ps)\n        self.key = ()\n",
        breaks="Answers arrive at the times that follow from where they are.",
        noticed_by=EXCHANGES,
        with_core=True,
    ),
    Mutant(
        name="collective-repeated-whatever-is-on-its-way",
        file=EVENTS,
        old="        self.key: Key = (type(self).__name__, after_ps, *key)\n",
        new="        self.key: Key = (type(self).__name__,)\n",
        breaks="What is on its way comes at its time, and takes links from messages.",
        noticed_by=EXCHANGES,
        with_core=True,
    ),
    Mutant(
        name="collective-that-leaves-no-credits",
        file=TEMPLATE,
        old="            event.insert(end)\n",
        new="            assert event\n",
        breaks="Credits that are on their way at the end of a collective come home.",
        noticed_by=EXCHANGES,
        with_core=True,
    ),
    Mutant(
        name="collective-that-counts-no-slots",
        file=TEMPLATE,
        old="        changes.counts.repeat()\n",
        new="",
        breaks="Queues count the slots that they send and receive.",
        noticed_by=EXCHANGES,
        with_core=True,
    ),
    Mutant(
        name="collective-with-flows-of-another-one",
        file=TEMPLATE,
        old="            part.number_flows(later)\n",
        new="",
        breaks="Transfers to another SIP are numbered one by one.",
        noticed_by=EXCHANGES,
        with_core=True,
    ),
    Mutant(
        name="collective-with-the-slots-of-another-one",
        file=RINGS,
        old="        return (place - self.place) * pair.slot_size",
        new="        return 0",
        breaks="Queues take the slots of their rings in turn.",
        noticed_by=EXCHANGES,
        with_core=True,
    ),
    Mutant(
        name="collective-in-place-from-any-slot",
        file=TEMPLATE,
        old="        if self._is_pinned and any(each.turned for each in self._rings):\n",
        new="        if self._is_pinned and not self._rings:\n",
        breaks="A message stays in its slots only where they do not wrap round the end.",
        noticed_by=TEST_SLOTS,
        with_core=True,
    ),
    Mutant(
        name="collective-with-another-number-of-events",
        file=LEARNED,
        old="self._events = len(on_way) - chips.engine.scheduled",
        new="self._events = 0 - chips.engine.scheduled",
        breaks="A repetition counts the events of a simulation.",
        noticed_by=EXCHANGES,
        with_core=True,
    ),
    Mutant(
        name="collective-whose-records-come-before-answers",
        file=LEARNED,
        old="HostAnswer(place, after_ps, recording.entered, number)",
        new="HostAnswer(place, after_ps, 0, number)",
        breaks="The records of a launch and those of answers are in the order of their ends.",
        noticed_by=EXCHANGES,
        with_core=True,
    ),
    Mutant(
        name="collective-repeated-however-far-apart-it-begins",
        file=EXCHANGES_OF_LP,
        old="        tuple(after_ps),\n",
        new="",
        breaks="Kernels of a SIP that begins later send and receive later.",
        noticed_by=EXCHANGES,
        with_core=True,
    ),
    Mutant(
        name="chips-held-for-longer-than-a-message-takes",
        file=HELD,
        old="self.first_ps + self._chips.lookahead_ps - 1",
        new="self.first_ps + 100 * self._chips.lookahead_ps",
        breaks="Within the lookahead no chip depends on another one; later it may.",
        noticed_by=EXCHANGES,
        with_core=True,
    ),
    Mutant(
        name="chips-that-go-on-at-the-time-of-the-last",
        file=HELD,
        old="        engine.now_ps = self.first_ps\n",
        new="",
        breaks="A chip that was held goes on where it has been held.",
        noticed_by=EXCHANGES,
        with_core=True,
    ),
    Mutant(
        name="collective-repeated-in-a-trace-of-slots",
        file=MEMBER,
        old="    if key is None or chip.log.transferred is not None:\n",
        new="    if key is None:\n",
        breaks="A trace has each slot that was sent and received.",
        noticed_by=EXCHANGES,
        with_core=True,
    ),
)
