"""The lines of sends and receives that never meet, from reports that the test builds."""

from msgspec.structs import replace

from runtime.core.errors import TransferMismatchError
from runtime.diagnosis.open_transfers import OpenTransfers
from runtime.wire.reports import OpenTransfer, SipReport


def transfer(
    sip: int,
    peer: int,
    *,
    sends: bool,
    tag: int = 0,
    behind: str = "",
    elements: str = "4 elements",
) -> OpenTransfer:
    source, target = (sip, peer) if sends else (peer, sip)
    return OpenTransfer(
        sip=sip,
        peer=peer,
        sends=sends,
        tag=tag,
        call=f"{source}-{target}/{tag}",
        elements=elements,
        function="send" if sends else "recv",
        line=f"r{sip}.py:{1 if sends else 2}",
        behind=behind,
    )


def opened(*ranks: list[OpenTransfer], waiting: str = "a read") -> OpenTransfers:
    return OpenTransfers(
        [
            SipReport(
                sip=sip,
                digest="",
                time_ps=0,
                finished=not transfers,
                outcome=None,
                counters={},
                blocked=(),
                waiting_for=waiting if transfers else "",
                transfers=tuple(transfers),
            )
            for sip, transfers in enumerate(ranks)
        ]
    )


def sends_then_receives(sip: int, ranks: int) -> list[OpenTransfer]:
    right, left = (sip + 1) % ranks, (sip - 1) % ranks
    return [
        transfer(sip, right, sends=True),
        transfer(sip, left, sends=False, behind=f"{sip}-{right}/0"),
    ]


def test_ranks_that_all_send_first_are_a_cycle_with_a_hint() -> None:
    cycle, hint, *rest = opened(*(sends_then_receives(sip, 3) for sip in range(3))).lines()
    assert cycle == (
        "cycle: rank 0 send to rank 1 -> rank 1 send to rank 2 -> rank 2 send to rank 0 -> (back)"
    )
    assert hint == (
        "hint: each of these ranks sends before its receive is posted: post both with "
        "batch_isend_irecv, or with isend and irecv before the first wait"
    )
    assert rest[0] == (
        "rank 0: send to rank 1, tag 0, 4 elements, at r0.py:1: rank 1 calls recv at r1.py:2, "
        "behind its send to rank 2 at r1.py:1"
    )


def test_ranks_that_all_receive_first_get_the_hint_of_receives() -> None:
    receives = [transfer(sip, 1 - sip, sends=False) for sip in (0, 1)]
    cycle, hint, *_ = opened(*([each] for each in receives)).lines()
    assert cycle == "cycle: rank 0 recv from rank 1 -> rank 1 recv from rank 0 -> (back)"
    assert hint.startswith("hint: each of these ranks waits for a receive before it sends: ")


def test_a_cycle_of_both_kinds_has_a_hint_of_its_own() -> None:
    # Rank 1 receives the second message first.
    sending = [
        transfer(0, 1, sends=True),
        transfer(0, 1, sends=True, tag=1, behind="0-1/0"),
    ]
    receiving = [
        transfer(1, 0, sends=False, tag=1),
        transfer(1, 0, sends=False, behind="0-1/1"),
    ]
    cycle, hint, *_ = opened(sending, receiving).lines()
    assert cycle == "cycle: rank 0 send to rank 1 -> rank 1 recv from rank 0 -> (back)"
    assert hint.startswith("hint: each of these operations is called behind another one")


def test_an_end_behind_something_else_is_a_line_without_a_hint() -> None:
    receiving = [transfer(1, 0, sends=False, behind="kernel 'all_reduce'")]
    assert list(opened([transfer(0, 1, sends=True)], receiving).lines()) == [
        (
            "rank 0: send to rank 1, tag 0, 4 elements, at r0.py:1: rank 1 calls recv at r1.py:2, "
            "behind kernel 'all_reduce'"
        )
    ]


def test_other_tags_are_named_once_in_rising_order() -> None:
    sends = [transfer(0, 1, sends=True, tag=tag) for tag in (4, 3, 4)]
    lines = list(opened(sends, [transfer(1, 0, sends=False, tag=5)]).lines())
    assert lines[-1].endswith(": rank 0 calls sends that wait with tags 3, 4 instead")
    assert lines[0].endswith(": rank 1 calls receives that wait with tag 5 instead")


def test_an_end_that_is_never_called_names_the_state_of_its_rank() -> None:
    [line] = opened([transfer(0, 1, sends=True, tag=2)], []).lines()
    assert line == (
        "rank 0: send to rank 1, tag 2, 4 elements, at r0.py:1: "
        "rank 1 calls no receive for it and has finished its program"
    )
    [first, _] = opened([transfer(0, 1, sends=True)], [transfer(1, 2, sends=False)], []).lines()
    assert first.endswith("rank 1 calls no receive for it and waits for a read")
    assert next(opened([transfer(0, 5, sends=False)]).lines()).endswith(
        "rank 5 is not part of the run"
    )


def test_two_posted_ends_of_one_message_are_a_mismatch_and_no_others() -> None:
    sent, received = transfer(0, 1, sends=True), transfer(1, 0, sends=False, elements="5 elements")
    mismatch = opened([sent], [received]).mismatch()
    assert isinstance(mismatch, TransferMismatchError)
    calls = ("0-1/0: 4 elements, at r0.py:1", "0-1/0: 5 elements, at r1.py:2")
    assert mismatch.args == (0, calls[0], 1, calls[1])
    assert opened(*(sends_then_receives(sip, 2) for sip in range(2))).mismatch() is None


def test_an_end_in_another_group_names_both_groups() -> None:
    ends = [transfer(0, 1, sends=True), transfer(1, 0, sends=False)]
    titles = ("world", "group1 of ranks 0 to 1")
    named = [
        [replace(each, call=f"{title} rank 0 to 1 #1")]
        for each, title in zip(ends, titles, strict=True)
    ]
    first, second = opened(*named).lines()
    assert first.endswith("rank 1 calls receives in group1 of ranks 0 to 1 that wait, not in world")
    assert second.endswith("rank 0 calls sends in world that wait, not in group1 of ranks 0 to 1")


def test_a_send_of_what_a_receive_replaces_has_the_hint_to_another_tensor() -> None:
    ranks = [
        [
            transfer(sip, 1 - sip, sends=False),
            replace(transfer(sip, 1 - sip, sends=True, behind=f"{1 - sip}-{sip}/0"), overlaps=True),
        ]
        for sip in (0, 1)
    ]
    _, hint, *_ = opened(*ranks).lines()
    assert hint.endswith(
        "before the first wait, and receive into other elements than those sent: operations on the "
        "same elements of a tensor run in the order of the calls"
    )


def test_a_command_between_a_receive_and_a_send_is_named() -> None:
    ranks = [
        [
            transfer(sip, 1 - sip, sends=False),
            replace(
                transfer(sip, 1 - sip, sends=True, behind=f"{1 - sip}-{sip}/0"),
                through="kernel 'scale'",
            ),
        ]
        for sip in (0, 1)
    ]
    _, hint, first, _ = opened(*ranks).lines()
    assert hint.endswith("before the first wait or launch that uses a received tensor")
    assert first.endswith(
        "rank 1 calls send at r1.py:1, behind kernel 'scale' and its recv from rank 0 at r1.py:2"
    )
