"""The loop of kernels that stream blocks."""

import pytest

from runtime.device.kernels.streamed import IN_TURN, SIDE_BY_SIDE, StagePace, streamed


def issued(count: int, pace: StagePace, chains: int) -> list[tuple[str, int]]:
    calls = list[tuple[str, int]]()
    streamed(
        count,
        pace,
        lambda block: calls.append(("load", block)),
        [lambda block, name=str(number): calls.append((name, block)) for number in range(chains)],
        lambda block: calls.append(("store", block)),
    )
    return calls


@pytest.mark.parametrize("pace", [SIDE_BY_SIDE, StagePace(1, 1), StagePace(2, 2), IN_TURN])
@pytest.mark.parametrize("chains", [1, 2, 3])
@pytest.mark.parametrize("count", [0, 1, 2, 7])
def test_each_block_passes_through_the_stages_in_their_order(
    pace: StagePace, chains: int, count: int
) -> None:
    calls = issued(count, pace, chains)
    stages = ["load", *map(str, range(chains)), "store"]
    for block in range(count):
        assert [stage for stage, each in calls if each == block] == stages
    for stage in stages:
        assert [block for each, block in calls if each == stage] == [*range(count)]


def test_loads_are_two_blocks_ahead_and_a_store_follows_the_chain_of_the_next_block() -> None:
    assert issued(4, SIDE_BY_SIDE, 1) == [
        ("load", 0),
        ("load", 1),
        ("0", 0),
        ("load", 2),
        ("0", 1),
        ("store", 0),
        ("load", 3),
        ("0", 2),
        ("store", 1),
        ("0", 3),
        ("store", 2),
        ("store", 3),
    ]


def test_blocks_in_turn_are_stored_before_the_next_one_is_loaded() -> None:
    assert issued(2, IN_TURN, 2) == [
        ("load", 0),
        ("0", 0),
        ("1", 0),
        ("store", 0),
        ("load", 1),
        ("0", 1),
        ("1", 1),
        ("store", 1),
    ]


@pytest.mark.parametrize("pace", [SIDE_BY_SIDE, StagePace(1, 1), StagePace(2, 2), IN_TURN])
@pytest.mark.parametrize("chains", [1, 2, 3])
def test_no_block_is_written_over_before_its_last_use_is_issued(
    pace: StagePace, chains: int
) -> None:
    calls = issued(9, pace, chains)
    stages = ["load", *map(str, range(chains)), "store"]
    steps = [0, *(pace.behind(number) for number in range(chains + 1))]
    for writer in range(chains + 1):
        for reader in range(writer + 1, chains + 2):
            slots = pace.slots(steps[writer], steps[reader])
            for block in range(9 - slots):
                last_use = calls.index((stages[reader], block))
                assert last_use < calls.index((stages[writer], block + slots))
