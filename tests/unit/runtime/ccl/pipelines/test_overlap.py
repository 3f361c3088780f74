"""The turns of blocks that overlap; what collectives compute with them is tested elsewhere."""

from runtime.ccl.pipelines.overlap import FLIGHT, Block, flight, overlapped


def stages_of(blocks: int, depth: int) -> list[tuple[int, int]]:
    """(block, stage) in the order of execution, for blocks of three stages."""
    done = list[tuple[int, int]]()

    def block(number: int) -> Block:
        for stage in range(2):
            done.append((number, stage))
            yield
        done.append((number, 2))

    overlapped(map(block, range(blocks)), depth)
    return done


def test_a_block_begins_in_each_turn_and_the_newest_one_sends_first() -> None:
    assert stages_of(3, depth=3) == [
        *[(0, 0)],
        *[(1, 0), (0, 1)],
        *[(2, 0), (1, 1), (0, 2)],
        *[(2, 1), (1, 2)],
        *[(2, 2)],
    ]


def test_a_block_beyond_the_depth_begins_when_the_oldest_one_has_ended() -> None:
    assert stages_of(3, depth=2) == [
        *[(0, 0)],
        *[(1, 0), (0, 1)],
        *[(1, 1), (0, 2)],
        *[(2, 0), (1, 2)],
        *[(2, 1)],
        *[(2, 2)],
    ]
    assert stages_of(2, depth=1) == [(number, stage) for number in (0, 1) for stage in range(3)]


def test_a_flight_takes_its_number_of_turns() -> None:
    assert len(list(flight())) == FLIGHT
    assert stages_of(0, depth=1) == []
