"""The text of a deadlock, from reports that the test builds."""

import pytest

from runtime.diagnosis.deadlock import deadlock
from runtime.wire.reports import BlockedPe, QueuePointers, RingAddress, SipReport

At = tuple[int, int, int]


def recv(at: At, peer: At | None, direction: str = "W") -> BlockedPe:
    return BlockedPe(*at, "k", "recv", direction if peer else "any", peer, 1_000, "k.py:3")


def queue(at: At, peer: At, *, arrived: int = 0, direction: str = "W") -> QueuePointers:
    ring = RingAddress(0, "tcm", *peer, 0)
    return QueuePointers(*at, "world/ring", direction, peer, 4, 64, 0, 0, 4, ring, arrived, 0, ring)


def report(
    sip: int, *blocked: BlockedPe, waiting_for: str = "", queues: tuple[QueuePointers, ...] = ()
) -> SipReport:
    waits = waiting_for or ("kernel 'k'" if blocked else "")
    return SipReport(sip, "", 1_000 + sip, not waits, None, {}, blocked, waits, "", queues)


def pe(sip: int, cube: int = 0, number: int = 0) -> At:
    return sip, cube, number


@pytest.mark.parametrize("sips", [1, 2, 3, 8])
def test_a_ring_of_receivers_is_one_cycle_that_begins_at_the_lowest(sips: int) -> None:
    reports = [report(sip, recv(pe(sip), pe((sip - 1) % sips))) for sip in reversed(range(sips))]
    order = [0, *range(sips - 1, 0, -1)]
    cycle = " -> ".join(f"sip {sip} cube 0 pe 0 recv W" for sip in order)
    assert deadlock(reports).waits == (f"cycle: {cycle} -> (back)",)


def test_the_error_has_the_last_time_and_lists_pes_and_ranks_in_the_order_of_their_sips() -> None:
    error = deadlock([report(1, recv(pe(1), pe(0))), report(0, recv(pe(0), pe(1)))])
    assert error.time_ps == 1_001
    assert error.pes == (
        "sip 0 cube 0 pe 0: kernel 'k' recv W (sip 1 cube 0 pe 0) since 1.000 ns at k.py:3",
        "sip 1 cube 0 pe 0: kernel 'k' recv W (sip 0 cube 0 pe 0) since 1.000 ns at k.py:3",
    )
    assert error.ranks == ("rank 0: waits for kernel 'k'", "rank 1: waits for kernel 'k'")


def test_a_chain_names_the_finished_rank_that_it_ends_at() -> None:
    error = deadlock([report(0, recv(pe(0), pe(2))), report(1), report(2, recv(pe(2), pe(1)))])
    assert error.waits == (
        (
            "chain: sip 0 cube 0 pe 0 recv W -> sip 2 cube 0 pe 0 recv W -> "
            "sip 1 cube 0 pe 0 runs no kernel: rank 1 has finished its program"
        ),
    )
    assert error.ranks == ("rank 0: waits for kernel 'k'", "rank 2: waits for kernel 'k'")


def test_a_rank_that_waits_without_a_blocked_pe_ends_a_chain() -> None:
    [line] = deadlock([report(0, recv(pe(0), pe(1))), report(1, waiting_for="a read of 'x'")]).waits
    assert line.endswith("-> sip 1 cube 0 pe 0 runs no kernel: rank 1 waits for a read of 'x'")


def test_ranks_that_launch_in_different_orders_wait_in_a_cycle_through_their_ranks() -> None:
    first = report(0, recv(pe(0, 0, 1), pe(1, 0, 1)), waiting_for="kernel 'b'")
    second = report(1, recv(pe(1, 0, 0), pe(0, 0, 0)), waiting_for="kernel 'a'")
    assert deadlock([first, second]).waits == (
        (
            "cycle: sip 0 cube 0 pe 0 runs no kernel: rank 0 waits for kernel 'b' -> "
            "sip 0 cube 0 pe 1 recv W -> sip 1 cube 0 pe 1 runs no kernel: "
            "rank 1 waits for kernel 'a' -> sip 1 cube 0 pe 0 recv W -> (back)"
        ),
    )


def test_chains_that_join_a_cycle_or_another_chain_have_lines_of_their_own() -> None:
    cycle = [recv(pe(0, 0, 0), pe(0, 0, 1)), recv(pe(0, 0, 1), pe(0, 0, 0))]
    tails = [recv(pe(0, 0, 2), pe(0, 0, 1)), recv(pe(0, 0, 3), pe(0, 0, 2))]
    assert deadlock([report(0, *cycle, *tails, recv(pe(0, 0, 4), pe(0, 0, 2)))]).waits == (
        "cycle: sip 0 cube 0 pe 0 recv W -> sip 0 cube 0 pe 1 recv W -> (back)",
        (
            "chain: sip 0 cube 0 pe 3 recv W -> sip 0 cube 0 pe 2 recv W -> "
            "sip 0 cube 0 pe 1 (in a cycle)"
        ),
        "chain: sip 0 cube 0 pe 4 recv W -> sip 0 cube 0 pe 2 (see there)",
    )


def test_a_receive_from_any_direction_waits_for_a_peer_that_waits_itself() -> None:
    queues = (queue(pe(0), pe(2), direction="E"), queue(pe(0), pe(1)))
    reports = [
        report(0, recv(pe(0), None), queues=queues),
        report(1),
        report(2, recv(pe(2), pe(0))),
    ]
    [line] = deadlock(reports).waits
    assert line == "cycle: sip 0 cube 0 pe 0 recv any -> sip 2 cube 0 pe 0 recv W -> (back)"


def test_rings_that_differ_in_cube_and_pe_alone_share_a_line() -> None:
    pes = [(cube, number) for cube in range(3) for number in range(2)]
    reports = [report(sip, *(recv((sip, *at), (1 - sip, *at)) for at in pes)) for sip in (0, 1)]
    error = deadlock(reports)
    cycle = "cycle: sip 0 cube 0 pe 0 recv W -> sip 1 cube 0 pe 0 recv W -> (back)"
    assert error.waits == (f"{cycle}; the same on 5 other PEs",)
    assert len(error.pes) == 12


def test_rings_that_do_different_things_do_not_share_a_line() -> None:
    reports = [
        report(sip, *(recv((sip, 0, at), (1 - sip, 0, at), f"W{at}") for at in (0, 1)))
        for sip in (0, 1)
    ]
    assert len(deadlock(reports).waits) == 2


def test_slots_that_were_never_received_have_a_line() -> None:
    waits = report(0, recv(pe(0), pe(1), "E"), queues=(queue(pe(0), pe(1), arrived=2),))
    assert deadlock([waits, report(1)]).waits[1:] == (
        "never received: 2 slots from sip 1 cube 0 pe 0 in world/ring W of sip 0 cube 0 pe 0",
    )


def test_a_long_list_of_queues_is_cut_in_the_text_and_whole_in_the_error() -> None:
    queues = tuple(queue(pe(0, 0, number), pe(1)) for number in range(40))
    error = deadlock([report(0, recv(pe(0), pe(1)), queues=queues), report(1)])
    assert len(error.queues) == 40
    assert str(error).splitlines()[-1] == "  8 more queues"
    assert str(error).count("peer's tail") == 32
