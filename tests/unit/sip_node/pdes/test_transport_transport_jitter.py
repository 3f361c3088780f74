from runtime.wire.frames import Frame
from sip_node.pdes.transport import JitterTransport
from tests.support.transport_memory import MemoryNetwork


class Clock:
    """A wall clock that a test moves."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def jittered(clock: Clock, seed: int = 7) -> tuple[MemoryNetwork, JitterTransport]:
    network = MemoryNetwork(3)
    return network, JitterTransport(network.transport(0), 1.0, (seed, 0), clock)


def arrivals(seed: int) -> list[tuple[float, int, int]]:
    """The time at which each of ten frames from two peers is handed over."""
    clock = Clock()
    network, transport = jittered(clock, seed)
    for n in range(10):
        network.transport(1 + n % 2).send(0, Frame((n,), 0))
    seen: list[tuple[float, int, int]] = []
    for _ in range(200):
        seen += [
            (round(clock.now_s, 6), peer, content.promise_ps) for peer, content in transport.poll()
        ]
        clock.now_s += 0.01
    return seen


def test_content_is_held_back_and_comes_within_the_longest_delay():
    seen = arrivals(7)
    assert len(seen) == 10
    assert len({when for when, _, _ in seen}) > 3
    assert all(when <= 101.02 for when, _, _ in seen)


def test_the_order_of_each_peer_stays():
    for seed in range(20):
        for peer in (1, 2):
            promises = [promise for _, who, promise in arrivals(seed) if who == peer]
            assert promises == sorted(promises)


def test_different_peers_overtake_each_other():
    assert any(
        [promise for _, _, promise in arrivals(seed)] != list(range(10)) for seed in range(5)
    )


def test_the_seed_fixes_the_delays():
    assert arrivals(7) == arrivals(7) != arrivals(8)


def test_sending_is_not_delayed():
    network, transport = jittered(Clock())
    transport.send(2, Frame((5,), 0))
    assert network.transport(2).poll() == [(0, Frame((5,), 0))]
