"""The registers of a queue: slots are read in the order of the ring."""

from runtime.core.coordinates import PeCoordinates
from runtime.core.requests import QueuePair
from sip_node.chip.pe.queue_table import QueueState, Slot

BASE, SLOT = 4096, 256


def test_a_slot_that_is_full_before_the_slot_before_it_waits_for_it():
    announced: list[str] = []
    pair = QueuePair(
        direction="E",
        peer=PeCoordinates(0, 0, 1),
        peer_direction="W",
        rx_base=BASE,
        tx_base=None,
        n_slots=3,
        slot_size=SLOT,
        credit_bytes=16,
        packet_bytes=64,
    )
    queue = QueueState("ring", pair, announced.append)
    slots = [Slot(BASE + number % 3 * SLOT, 64, "f32", "") for number in range(4)]
    queue.fill(slots[1])
    assert (announced, list(queue.arrived), queue.filled) == ([], [], 0)
    queue.fill(slots[0])
    assert (announced, list(queue.arrived), queue.filled) == (["E", "E"], slots[:2], 2)
    # The ring goes on at its first slot, which has been read meanwhile.
    assert [queue.release(), queue.release()] == [BASE, BASE + SLOT]
    queue.fill(slots[3])
    assert queue.filled == 2
    queue.fill(slots[2])
    assert (list(queue.arrived), queue.filled) == (slots, 4)
