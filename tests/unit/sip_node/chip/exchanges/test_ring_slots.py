"""The slots of a ring that a repeated collective uses, and where it depends on them."""

from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from runtime.core.trace import Operand, OpRecord
from sip_node.chip.exchanges.exchange_template import ExchangeTemplate
from sip_node.chip.exchanges.ring_slots import RingSlots, SentSlots
from tests.support.kept import entered, kept

RING, SLOT, SLOTS = 0x1000, 64, 4


def queue(sent: int) -> Any:
    pair = SimpleNamespace(tx_base=RING, slot_size=SLOT, n_slots=SLOTS)
    return SimpleNamespace(sent=sent, pair=pair)


def sent_to(address: int, count: int = 16) -> OpRecord:
    return OpRecord(
        "pe_dma", "ipcq_send", 0, 1, 0, 0, address, 4 * count, (count,), "f32", inputs=()
    )


@pytest.mark.parametrize("sent", [0, 1, 3, 4, 7])
def test_blocks_move_with_the_slots_that_a_queue_takes(sent: int) -> None:
    of = queue(2)
    records = kept([sent_to(RING + slot * SLOT) for slot in (2, 3, 0)])
    slots = RingSlots([SentSlots(of)], records)
    of.sent = 2 + sent
    records.move(slots.distances())
    moved = [each.address for each in entered(records)[1]]
    assert moved == [RING + (slot + sent) % SLOTS * SLOT for slot in (2, 3, 0)]


def test_operands_in_a_ring_move_and_others_stay() -> None:
    of = queue(0)
    own, moved, far = (Operand(RING + slot * SLOT, (16,), "f32") for slot in (1, 2, SLOTS))
    record = OpRecord("pe_math", "add", 0, 1, 0, 0, 0x40, 64, (16,), "f32", inputs=(far, own))
    records = kept([record])
    slots = RingSlots([SentSlots(of)], records)
    of.sent = 2
    records.move((SLOT,))
    assert entered(records)[1] == [msgspec.structs.replace(record, inputs=(far, moved))]
    assert slots.distances() == (2 * SLOT,)


@pytest.mark.parametrize(("count", "spans"), [(16, False), (17, True)])
def test_a_block_in_several_slots_is_known_to_span_them(count: int, *, spans: bool) -> None:
    slots = RingSlots([SentSlots(queue(0))], kept([sent_to(RING, count)]))
    assert slots.spans == spans


@pytest.mark.parametrize("is_pinned", [False, True])
def test_what_depends_on_where_a_ring_stands_is_repeated_from_there_only(
    *, is_pinned: bool
) -> None:
    of = queue(1)
    rings, chips = [SentSlots(of)], SimpleNamespace(engine=SimpleNamespace(now_ps=0))
    template = ExchangeTemplate(
        cast("Any", chips), [], None, cast("Any", None), rings, is_pinned=is_pinned
    )
    assert template.fits([], []) == []
    of.sent += SLOTS
    assert template.fits([], []) == []
    of.sent += 1
    assert template.fits([], []) == (None if is_pinned else [])
