"""Contract of a transport, on which the loop relies, checked for every transport."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from runtime.core.errors import ConnectionLost
from runtime.wire.codec import PeerDecoder
from runtime.wire.frames import Call, Frame, Grant, Message, PairCount, PeerContent, SilenceReport
from runtime.wire.packet_blocks import pack
from runtime.wire.packets import TransferFlow, TransferRows
from sip_node.pdes.promise_board import PromiseBoard
from sip_node.pdes.transport import JitterTransport, Transport
from sip_node.pdes.transport_board import BoardTransport
from sip_node.pdes.transport_zmq import ZmqTransport
from tests.support.packets import packet_run, transfer_header
from tests.support.transport_memory import MemoryNetwork

LPS = 3
LP_OF = (0, 1, 2)
"""One entity on each LP, with the number of its LP."""


def memory() -> list[Transport]:
    network = MemoryNetwork(LPS)
    return [network.transport(lp) for lp in range(LPS)]


def decoders() -> list[PeerDecoder]:
    return [PeerDecoder(lp, LP_OF, lambda message: "") for lp in range(LPS)]


def over_ipc(directory: Path) -> list[Transport]:
    """LPs of one host."""
    transports = [ZmqTransport("run") for lp in range(LPS)]
    endpoints = {lp: f"ipc://{directory}/lp{lp}" for lp in range(LPS)}
    for lp, (transport, decoder) in enumerate(zip(transports, decoders(), strict=True)):
        transport.bind(lp, endpoints[lp])
        peers = {peer: endpoint for peer, endpoint in endpoints.items() if peer != lp}
        transport.connect(lp, peers, {}, decoder)
    return list(transports)


def over_tcp(address: str) -> list[Transport]:
    """Every LP on a host of its own, with CURVE."""
    transports = [ZmqTransport("run") for lp in range(LPS)]
    endpoints = [transport.listen(address) for transport in transports]
    for lp, (transport, decoder) in enumerate(zip(transports, decoders(), strict=True)):
        peers = {peer: endpoint for peer, endpoint in enumerate(endpoints) if peer != lp}
        transport.connect(lp, {}, peers, decoder)
    return list(transports)


def over_both(directory: Path) -> list[Transport]:
    """LP 0 on one host, LPs 1 and 2 on another: the socket of an LP has two endpoints."""
    transports = [ZmqTransport("run") for lp in range(LPS)]
    near = {1: f"ipc://{directory}/lp1", 2: f"ipc://{directory}/lp2"}
    far = [transport.listen("127.0.0.1") for transport in transports]
    for lp, (transport, decoder) in enumerate(zip(transports, decoders(), strict=True)):
        if lp in near:
            transport.bind(lp, near[lp])
        peers = {peer: near[peer] for peer in near if lp in near and peer != lp}
        others = {peer: far[peer] for peer in range(LPS) if peer != lp and peer not in peers}
        transport.connect(lp, peers, others, decoder)
    return list(transports)


def delayed(transports: list[Transport]) -> list[Transport]:
    for transport in transports:
        assert isinstance(transport, ZmqTransport)
        transport.delay(0.0005)
    return transports


def on_board(inner: list[Transport], directory: Path) -> list[Transport]:
    """Promises over shared memory, from the start of the run on."""
    boards = [PromiseBoard(directory, lp, LPS) for lp in range(LPS)]
    transports: list[Transport] = []
    for lp, (transport, board) in enumerate(zip(inner, boards, strict=True)):
        if isinstance(transport, ZmqTransport):
            transport.wake_by(board.bell, board.clear_bell)
        peers = [peer for peer in range(LPS) if peer != lp]
        transports.append(BoardTransport(transport, board, peers, watches=lp != 1))
    for transport in transports:
        assert transport.poll() == []
    return transports


def jittered(inner: list[Transport]) -> list[Transport]:
    return [JitterTransport(transport, 0.002, (11, lp)) for lp, transport in enumerate(inner)]


@pytest.fixture(
    params=[
        "memory",
        "zeromq ipc",
        "zeromq tcp",
        "zeromq tcp, IPv6",
        "zeromq ipc and tcp",
        "zeromq ipc, delayed",
        "board and memory",
        "board and zeromq ipc",
        "jitter over memory",
        "jitter over zeromq ipc",
        "jitter over board and zeromq ipc",
    ]
)
def ends(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[list[Transport]]:
    made = {
        "memory": memory,
        "zeromq ipc": lambda: over_ipc(tmp_path),
        "zeromq tcp": lambda: over_tcp("127.0.0.1"),
        "zeromq tcp, IPv6": lambda: over_tcp("::1"),
        "zeromq ipc and tcp": lambda: over_both(tmp_path),
        "zeromq ipc, delayed": lambda: delayed(over_ipc(tmp_path)),
        "board and memory": lambda: on_board(memory(), tmp_path),
        "board and zeromq ipc": lambda: on_board(over_ipc(tmp_path), tmp_path),
        "jitter over board and zeromq ipc": lambda: jittered(
            on_board(over_ipc(tmp_path), tmp_path)
        ),
        "jitter over memory": lambda: jittered(memory()),
        "jitter over zeromq ipc": lambda: jittered(over_ipc(tmp_path)),
    }[request.param]()
    yield made
    for transport in made:
        transport.close()
    assert list(tmp_path.iterdir()) == [], "a file was left behind"


def receive(transport: Transport, count: int) -> list[tuple[int, PeerContent]]:
    """The next `count` items; the timeout of pytest ends an endless wait."""
    received: list[tuple[int, PeerContent]] = []
    while len(received) < count:
        transport.wait(0.1)
        received += transport.poll()
    return received


def receive_contents(transport: Transport, count: int) -> list[tuple[int, PeerContent]]:
    """The next `count` items that are no promises: these may come ahead of their frame."""
    received: list[tuple[int, PeerContent]] = []
    while len(received) < count:
        received += [
            (source, content)
            for source, content in receive(transport, 1)
            if not isinstance(content, Frame) or content.messages
        ]
    return received


def run(number: int, seq: int, size: int) -> bytes:
    header = transfer_header(
        total=size,
        address=1 << 40,
        sent_ps=1 << 61,
        flow=TransferFlow(4, 5, 6),
        rows=TransferRows(8, 16, 4, 100),
        call="all_reduce #1",
    )
    return pack(packet_run(header, heads_ps=(number,), seqs=(seq,)))


def frame(number: int, *payloads: bytes, source: int = 2, target: int = 0) -> Frame:
    messages = tuple(
        Message(
            time_ps=number,
            source=source,
            target=target,
            seq=seq,
            body=run(number, seq, len(payload)) if payload else b"",
            payload=payload,
        )
        for seq, payload in enumerate(payloads)
    )
    return Frame((number, number + 1), number % 3, messages)


@pytest.mark.parametrize(
    "content",
    [
        frame(1),
        frame(2, b"", b"two", bytes(range(256)) * 4096, b""),
        SilenceReport(3, 1 << 62, 9, True, (PairCount(2, 1, 7),), (PairCount(0, 2, 5),)),
        Call(),
        Grant(1 << 62, True),
    ],
    ids=["null message", "messages with payloads", "silence report", "call", "grant"],
)
def test_content_arrives_as_it_was_sent_with_its_sender(
    ends: list[Transport], content: PeerContent
):
    ends[2].send(0, content)
    assert receive(ends[0], 1) == [(2, content)]


def test_content_of_one_peer_arrives_in_order_and_none_is_lost(ends: list[Transport]):
    for number in range(200):
        ends[1].send(0, frame(number, b"x" * (number % 7), source=1))
        ends[2].send(0, frame(number, b""))
    received = receive_contents(ends[0], 400)
    for peer in (1, 2):
        assert [content.promise_ps for source, content in received if source == peer] == list(
            range(200)
        )


def test_kinds_of_content_do_not_overtake_each_other(ends: list[Transport]):
    sent: list[PeerContent] = [
        frame(1, b"a", source=0, target=1),
        Grant(5, False),
        frame(2, b"", source=0, target=1),
        SilenceReport(0, 9, 9, False),
        Call(),
        frame(3, b"b", source=0, target=1),
    ]
    for content in sent:
        ends[0].send(1, content)
    assert [content for _, content in receive_contents(ends[1], len(sent))] == sent


def test_a_promise_may_be_replaced_but_overtakes_no_message_and_the_last_one_arrives(
    ends: list[Transport],
):
    for number in range(0, 90, 3):
        ends[0].send(1, frame(number, b"a", source=0, target=1))
        ends[0].send(1, Grant(number, True))
        ends[0].send(1, frame(number + 1))
        ends[0].send(1, frame(number + 2))
    received: list[PeerContent] = []
    while not received or received[-1] != frame(89):
        ends[1].wait(0.1)
        received += [content for _, content in ends[1].poll()]
    frames = [content for content in received if isinstance(content, Frame)]
    assert sorted(frames, key=lambda content: content.promise_ps) == frames
    assert len([content for content in frames if content.messages]) == 30
    assert [content for content in received if isinstance(content, Grant)] == [
        Grant(number, True) for number in range(0, 90, 3)
    ]


def test_each_lp_receives_its_own(ends: list[Transport]):
    for peer in (1, 2):
        ends[0].send(peer, frame(peer))
    for peer in (1, 2):
        assert receive(ends[peer], 1) == [(0, frame(peer))]
    assert ends[0].poll() == []


def test_polling_without_content_returns_at_once(ends: list[Transport]):
    assert ends[0].poll() == []


def test_sending_does_not_wait_for_the_peer_to_poll(ends: list[Transport]):
    for number in range(2000):
        ends[0].send(1, frame(number, b"", source=0, target=1))
    assert len(receive_contents(ends[1], 2000)) == 2000


def test_waiting_without_content_ends_after_the_timeout(ends: list[Transport]):
    ends[0].wait(0.001)
    assert ends[0].poll() == []


def test_closing_twice_loses_nothing_that_was_sent(ends: list[Transport]):
    ends[0].send(1, frame(7))
    ends[0].close()
    ends[0].close()
    received: list[tuple[int, PeerContent]] = []
    while not received:
        ends[1].wait(0.1)
        # Between hosts that is an error as well, but not instead of what arrives.
        with suppress(ConnectionLost):
            received = ends[1].poll()
    assert received == [(0, frame(7))]
