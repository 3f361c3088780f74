"""Messages in turn at a port that is reserved from elsewhere, too."""

from sip_node.chip.fabric.server import Server
from sip_node.chip.memory.access import Access
from sip_node.chip.memory.memory_port import PortTurns
from sip_node.pdes.engine import Engine

NS = 1000


class Desk:
    """A port of 1 GB/s, and (name, begin in ns) of what it served."""

    def __init__(self) -> None:
        self.engine, self.server = Engine(), Server("port", 1)
        self.turns = PortTurns(self.engine, self.server)
        self.served: list[tuple[str, int]] = []

    def submit(self, name: str, nbytes: int = 10) -> None:
        access = Access(
            message=(0, 0, ord(name[0])),
            offset=0,
            nbytes=nbytes,
            arrived_ps=self.engine.now_ps,
            tail_ps=self.engine.now_ps,
            writes=False,
            begun=lambda begin_ps, _start_ps, _end_ps: self.served.append((name, begin_ps // NS)),
        )
        self.turns.submit(access)

    def run(self) -> list[tuple[str, int]]:
        while self.engine.next_ps() < 10**12:
            self.engine.step()
        return sorted(self.served, key=lambda each: each[1])


def test_messages_have_their_turns_and_the_port_is_never_idle() -> None:
    desk = Desk()
    for name in ("a0", "a1", "a2", "a3", "b0", "b1"):
        desk.submit(name)
    # a1 has reserved the port when b comes.
    assert [name for name, _ in desk.run()] == ["a0", "a1", "b0", "a2", "b1", "a3"]
    assert [begin for _, begin in desk.run()] == list(range(0, 60, 10))


def test_a_message_alone_is_served_back_to_back_in_order() -> None:
    desk = Desk()
    for index in range(4):
        desk.submit(f"a{index}")
    assert desk.run() == [("a0", 0), ("a1", 10), ("a2", 20), ("a3", 30)]
    desk.engine.at(100 * NS, desk.submit, "a4")
    assert desk.run()[-1] == ("a4", 100)


def test_a_direct_reservation_comes_between_two_packets() -> None:
    desk = Desk()
    for index in range(3):
        desk.submit(f"a{index}")
    desk.engine.at(5 * NS, desk.server.reserve, 5 * NS, 5 * NS, 7)
    assert desk.run() == [("a0", 0), ("a1", 10), ("a2", 27)]
