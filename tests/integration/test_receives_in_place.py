"""Receives in place and sends in the background, on a simulated chip."""

import pytest

from runtime import tl
from runtime.core.errors import KernelError
from runtime.language.value import Value
from tests.integration.test_receives import CENTRE, WEST, busy, content, converse, sends


def in_place(size: int = 64) -> Value:
    """Receive one message from W in place."""
    buffer = tl.empty(size, tl.int8)
    value = tl.recv_async("W", dst_addr=buffer, in_place=True).wait()
    assert value is not None
    return value


def test_a_receive_in_place_has_the_elements_in_its_slots_and_copies_nothing() -> None:
    received = list[list[int]]()

    def centre(at: tl.Pointer) -> None:
        value = in_place(100)
        received.append(content(value))
        tl.store(at, value)

    world = converse(centre, west=sends("E", 5, size=100), n_slots=2, slot_size=64)
    assert received == [[5] * 100]
    assert world.returned[0][:101].tolist() == [5] * 100 + [100]
    assert not world.of("pe_dma", "ipcq_recv")
    ((_, stored),) = world.of("pe_dma", "store")
    ((_, first), _) = world.of("pe_dma", "ipcq_send")
    # The store reads the slots themselves.
    assert stored.inputs[0].address == first.address


def test_slots_in_place_are_full_until_their_release() -> None:
    def centre(_: tl.Pointer) -> None:
        first = in_place()
        busy(10)
        tl.release(first)
        tl.release(in_place())

    world = converse(centre, west=sends("E", 1, 2), n_slots=1, slot_size=64)
    (_, first), (_, second) = world.of("pe_dma", "ipcq_send")
    fills = [record for _, record in world.of("pe_math", "full") if record.pe == CENTRE[1]]
    assert second.start_ps > max(fill.end_ps for fill in fills) > first.end_ps


def test_a_message_that_wraps_round_the_end_of_the_ring_is_copied_over_its_buffer() -> None:
    received = list[list[int]]()

    def centre(_: tl.Pointer) -> None:
        # Slots 0 and 1, then 2 and 0: the second message wraps.
        for _number in range(2):
            value = in_place(128)
            received.append(content(value))
            tl.release(value)

    world = converse(centre, west=sends("E", 1, 2, size=128), n_slots=3, slot_size=64)
    assert received == [[1] * 128, [2] * 128]
    assert len(world.of("pe_dma", "ipcq_recv")) == 2


def test_credits_of_slots_that_are_released_early_wait_for_the_older_ones() -> None:
    def centre(_: tl.Pointer) -> None:
        first, second = in_place(), in_place()
        tl.release(second)
        busy(10)
        tl.release(first)
        tl.release(in_place())

    world = converse(centre, west=sends("E", 1, 2, 3), n_slots=2, slot_size=64)
    third = world.of("pe_dma", "ipcq_send")[2][1]
    fills = [record for _, record in world.of("pe_math", "full") if record.pe == CENTRE[1]]
    assert third.start_ps > max(fill.end_ps for fill in fills)


def test_messages_that_have_arrived_before_an_earlier_receive_ends_are_received_once() -> None:
    received = list[int]()

    def centre(at: tl.Pointer) -> None:
        # All messages arrive; the copy of the first one to HBM lasts while the others are posted.
        busy(10)
        first = tl.recv_async("W", 64, tl.int8, dst_addr=at, dst_space="hbm")
        buffers = [tl.empty(64, tl.int8) for _ in range(3)]
        pending = [tl.recv_async("W", dst_addr=each, in_place=True) for each in buffers]
        first.wait()
        values = [tl.load(at, 64), *(each.wait() for each in pending)]
        values += [tl.recv("W", 64, tl.int8) for _ in range(2)]
        received.extend(content(each)[0] for each in values if each is not None)

    converse(centre, west=sends("E", *range(6)), n_slots=8, slot_size=64)
    assert received == [0, 1, 2, 3, 4, 5]


def test_a_kernel_that_ends_releases_what_it_has_received_in_place() -> None:
    world = converse(lambda _: content(in_place()), west=sends("E", 1), n_slots=2, slot_size=64)
    west = world.node.chips[0].pes[WEST[1]].ipcq
    queue = next(each for each in west.pointers() if each.direction == "E")
    # One slot was sent, and the credit for it is back.
    assert (queue.head, queue.peer_tail, queue.credits) == (1, 1, 2)


def test_the_release_of_another_value_is_an_error_of_the_kernel() -> None:
    def centre(_: tl.Pointer) -> None:
        tl.release(tl.zeros(4, tl.int8))

    with pytest.raises(KernelError, match=r"release of Value\(.*which was not received in place"):
        converse(centre)


@pytest.mark.parametrize("kind", ["hbm", "sram"])
def test_a_ring_outside_the_tcm_is_copied(kind: str) -> None:
    received = list[list[int]]()

    def centre(_: tl.Pointer) -> None:
        value = in_place()
        received.append(content(value))
        tl.release(value)

    converse(centre, west=sends("E", 7), buffer_kind=kind)
    assert received == [[7] * 64]


def test_sends_in_the_background_leave_in_order_while_the_kernel_goes_on() -> None:
    received = list[int]()

    def west(_: tl.Pointer) -> None:
        pending = [tl.send_async("E", tl.full(64, number, tl.int8)) for number in range(3)]
        # Behind those in the background, although this call blocks.
        tl.send("E", tl.full(64, 3, tl.int8))
        for each in pending:
            assert each.wait() is None

    def centre(_: tl.Pointer) -> None:
        busy(10)
        for _number in range(4):
            received.append(content(tl.recv("W", 64, tl.int8))[0])

    world = converse(centre, west=west, n_slots=1, slot_size=64)
    assert received == [0, 1, 2, 3]
    full = [record for _, record in world.of("pe_math", "full") if record.pe == WEST[1]]
    first_sent = world.of("pe_dma", "ipcq_send")[1][1]
    # One slot: the second message leaves after the first receive, the kernel computed before.
    assert full[2].end_ps < first_sent.start_ps


def test_a_kernel_ends_when_its_sends_in_the_background_have_left() -> None:
    def west(_: tl.Pointer) -> None:
        for number in range(3):
            tl.send_async("E", tl.full(64, number, tl.int8))

    def centre(_: tl.Pointer) -> None:
        for _number in range(3):
            tl.recv("W", 64, tl.int8)

    world = converse(centre, west=west, n_slots=1, slot_size=64)
    ends = [record.end_ps for _, record in world.of("pe_dma", "ipcq_send")]
    assert len(ends) == 3
    kernels = [record for _, record in world.of("pe_cpu", "kernel") if record.pe == WEST[1]]
    assert kernels[-1].end_ps >= max(ends)
