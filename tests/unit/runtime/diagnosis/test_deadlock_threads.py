"""Wait-for cycles and chains where a PE runs a collective beside another kernel."""

from runtime.core.errors import IpcqDeadlock
from runtime.diagnosis.deadlock import deadlock
from runtime.wire.reports import BlockedPe, SipReport

CALL = "world #1: all_reduce(f32 (4,), op sum)"


def waits(sip: int, peer: int, *, call: str = "") -> BlockedPe:
    """PE 0 of `sip` receives from PE 0 of `peer`: a collective from W, another kernel from E."""
    return BlockedPe(
        sip, 0, 0, "k", "recv", "W" if call else "E", (peer, 0, 0), 1_000, "k.py:3", call
    )


def lines(*reports: tuple[BlockedPe, ...]) -> tuple[str, ...]:
    """The wait-for lines of SIPs with these blocked kernels; a SIP without one has finished."""
    found = deadlock(
        [
            SipReport(
                sip, "", 1_000, not blocked, None, {}, blocked, "kernel 'k'" if blocked else ""
            )
            for sip, blocked in enumerate(reports)
        ]
    )
    assert isinstance(found, IpcqDeadlock)
    return found.waits


def test_collectives_wait_for_collectives_and_kernels_for_kernels() -> None:
    both = [(waits(sip, 1 - sip), waits(sip, 1 - sip, call=CALL)) for sip in (0, 1)]
    assert lines(*both) == tuple(
        f"cycle: sip 0 cube 0 pe 0 recv {direction} -> sip 1 cube 0 pe 0 recv {direction} -> (back)"
        for direction in "EW"
    )


def test_a_peer_whose_other_thread_is_blocked_depends_on_that_thread() -> None:
    assert lines((waits(0, 1, call=CALL),), (waits(1, 2),), ()) == (
        (
            "chain: sip 0 cube 0 pe 0 recv W -> sip 1 cube 0 pe 0 runs no other kernel: "
            "rank 1 waits for kernel 'k' -> sip 1 cube 0 pe 0 recv E -> "
            "sip 2 cube 0 pe 0 runs no kernel: rank 2 has finished its program"
        ),
    )


def test_the_text_of_a_blocked_pe_names_its_collective_call() -> None:
    text = "sip 0 cube 0 pe 0: kernel 'k' recv W (sip 1 cube 0 pe 0) since 1.000 ns at k.py:3"
    assert str(waits(0, 1, call=CALL)) == f"{text}, in {CALL}"
    assert str(waits(0, 1)) == text.replace("recv W", "recv E")
