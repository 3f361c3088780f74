"""The schedules of the collectives: the printed traces of four ranks, and any number of ranks
against the definition.
"""

import doctest

import pytest

from runtime.ccl import index_algebra
from runtime.ccl.index_algebra import (
    doubling_partner,
    doubling_steps,
    halved_chunk,
    halving_steps,
    line_gather_step,
    line_scatter_step,
    ring_gather_step,
    ring_scatter_step,
    tree_step,
)

SIZES = range(1, 10)
Sums = dict[int, frozenset[int]]
"""Chunk -> the ranks whose contributions are in it."""


def own_contributions(size: int) -> list[Sums]:
    return [{chunk: frozenset([rank]) for chunk in range(size)} for rank in range(size)]


def test_the_traces_of_four_ranks_are_those_of_the_docstrings() -> None:
    results = doctest.testmod(index_algebra)
    assert results.attempted >= 15
    assert results.failed == 0


@pytest.mark.parametrize("size", SIZES)
def test_a_ring_combines_every_contribution_once_and_distributes_all_chunks(size: int) -> None:
    sums = own_contributions(size)
    for step in range(size - 1):
        sent = [dict(each) for each in sums]
        for rank in range(size):
            behind = (rank - 1) % size
            chunk = ring_scatter_step(rank, step, size)[1]
            assert ring_scatter_step(behind, step, size)[0] == chunk
            assert sums[rank][chunk].isdisjoint(sent[behind][chunk])
            sums[rank][chunk] |= sent[behind][chunk]
    complete = [{(rank + 1) % size} for rank in range(size)]
    for rank in range(size):
        assert sums[rank][(rank + 1) % size] == frozenset(range(size))
    for step in range(size - 1):
        for rank, chunk in [(r, ring_gather_step(r, step, size)[0]) for r in range(size)]:
            assert chunk in complete[rank]
            assert ring_gather_step((rank + 1) % size, step, size)[1] == chunk
        for rank in range(size):
            complete[rank].add(ring_gather_step(rank, step, size)[1])
    assert all(chunks == set(range(size)) for chunks in complete)


@pytest.mark.parametrize("size", SIZES)
def test_on_a_line_every_chunk_comes_to_its_position_from_both_ends(size: int) -> None:
    rising, falling = own_contributions(size), own_contributions(size)
    for step in range(size):
        for position in range(size):
            upwards, downwards = line_scatter_step(position, step, size)
            if upwards is not None and upwards > position:
                rising[position + 1][upwards] |= rising[position][upwards]
            if downwards is not None and downwards < position:
                falling[position - 1][downwards] |= falling[position][downwards]
    for position in range(size):
        assert rising[position][position] == frozenset(range(position + 1))
        assert falling[position][position] == frozenset(range(position, size))


@pytest.mark.parametrize("size", SIZES)
def test_on_a_line_every_chunk_goes_to_both_ends(size: int) -> None:
    held = [{position} for position in range(size)]
    for step in range(size):
        steps = [line_gather_step(position, step, size) for position in range(size)]
        for position, (below, above) in enumerate(steps):
            assert {below, above} - {None} <= held[position]
        for position, (below, above) in enumerate(steps):
            if below is not None and position < size - 1:
                held[position + 1].add(below)
            if above is not None and position > 0:
                held[position - 1].add(above)
    assert all(chunks == set(range(size)) for chunks in held)


@pytest.mark.parametrize("bits", range(5))
def test_halving_and_doubling_are_a_reduce_scatter_and_an_all_gather(bits: int) -> None:
    ranks = 1 << bits
    sums = own_contributions(ranks)
    for step in range(bits):
        steps = [list(halving_steps(rank, ranks))[step] for rank in range(ranks)]
        sent = [dict(each) for each in sums]
        for rank, (bit, kept, _) in enumerate(steps):
            partner = doubling_partner(rank, bit)
            assert steps[partner][2] == kept
            for chunk in range(*kept):
                assert sums[rank][chunk].isdisjoint(sent[partner][chunk])
                sums[rank][chunk] |= sent[partner][chunk]
    held = [{halved_chunk(rank, ranks)} for rank in range(ranks)]
    for rank in range(ranks):
        assert sums[rank][halved_chunk(rank, ranks)] == frozenset(range(ranks))
    for step in range(bits):
        steps = [list(doubling_steps(rank, ranks))[step] for rank in range(ranks)]
        for rank, (bit, sent_chunks, received) in enumerate(steps):
            assert set(range(*sent_chunks)) == held[rank]
            assert steps[doubling_partner(rank, bit)][1] == received
        for rank, (_, _, received) in enumerate(steps):
            held[rank] |= set(range(*received))
    assert all(chunks == set(range(ranks)) for chunks in held)


@pytest.mark.parametrize("messages", [1, 2, 5])
@pytest.mark.parametrize("rank", range(9))
def test_every_rank_of_a_tree_sends_each_message_once_in_each_direction(
    rank: int, messages: int
) -> None:
    depth = (rank + 1).bit_length() - 1
    steps = [tree_step(rank, step, messages) for step in range(messages + 2 * depth)]
    upwards = [up for up, _ in steps if up is not None]
    assert upwards == ([] if rank == 0 else list(range(messages)))
    assert [down for _, down in steps if down is not None] == list(range(messages))
    for up, down in steps:
        assert up is None or down is None or down <= up
