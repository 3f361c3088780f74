"""The window of a DMA engine: places, turns, and landings in any order."""

from sip_node.chip.fabric.packet import FabricTransfer, Kind, Packet
from sip_node.chip.pe.read_window import ReadWindow
from sip_node.pdes.engine import Engine


class Reader:
    """READs by name, of 8 bytes each; answers land a round trip later."""

    def __init__(self, places: int, trips_ps: list[int]) -> None:
        self.engine, self.packets = Engine(), list[Packet]()
        self.sent: list[tuple[int, str]] = []
        self.window = ReadWindow(self.engine, self, 7, places, 8, 2)
        self._trips_ps = trips_ps

    def begin(self, time_ps: int, name: str, reads: int) -> None:
        transfer = FabricTransfer(Kind.READ, 0, 7, 0, 1, total=8 * reads - 3, call=name)
        self.engine.at(time_ps, self.window.begin, transfer)

    def run(self) -> list[tuple[int, str]]:
        self.engine.run_before(1 << 40)
        return self.sent

    def send(self, packet: Packet, origin: int, tail_ps: int) -> None:
        trip_ps = self._trips_ps[len(self.sent) % len(self._trips_ps)]
        now_ps = self.engine.now_ps
        assert (origin, tail_ps) == (7, now_ps)
        self.sent.append((now_ps, packet.transfer.call))
        self.packets.append(packet)
        # The head of an answer comes before its last byte lands.
        self.engine.at(now_ps + trip_ps // 2, self.window.landed, now_ps + trip_ps)


def test_a_full_window_sends_when_a_packet_lands() -> None:
    reader = Reader(places=2, trips_ps=[100])
    reader.begin(0, "A", reads=5)
    assert [time_ps for time_ps, _ in reader.run()] == [0, 0, 100, 100, 200]


def test_a_read_is_divided_into_packets_of_which_the_last_requests_the_rest() -> None:
    reader = Reader(places=9, trips_ps=[100])
    reader.begin(0, "A", reads=3)
    reader.run()
    assert [(packet.begin, packet.last) for packet in reader.packets] == [
        (0, False),
        (8, False),
        (16, True),
    ]
    assert {packet.size for packet in reader.packets} == {2}


def test_requests_take_turns() -> None:
    reader = Reader(places=1, trips_ps=[10])
    reader.begin(0, "A", reads=4)
    reader.begin(5, "B", reads=2)
    assert "".join(name for _, name in reader.run()) == "AABABA"


def test_a_place_is_free_with_the_first_packet_that_lands_in_any_order_of_sending() -> None:
    reader = Reader(places=2, trips_ps=[100, 30])
    reader.begin(0, "A", reads=3)
    assert reader.run()[-1] == (30, "A")


def test_places_are_free_again_for_a_later_request() -> None:
    reader = Reader(places=2, trips_ps=[100])
    reader.begin(0, "A", reads=2)
    reader.begin(40, "B", reads=1)
    reader.begin(500, "C", reads=2)
    assert reader.run()[2:] == [(100, "B"), (500, "C"), (500, "C")]
