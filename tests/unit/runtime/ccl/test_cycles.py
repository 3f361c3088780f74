"""Every position once; the length of the steps as the theory of Hamiltonian cycles has it."""

import pytest

from runtime.ccl.cycles import grid_cycle

SIDES = [(w, h) for w in range(1, 8) for h in range(1, 8)]


def step_lengths(w: int, h: int, *, wraps: bool) -> list[int]:
    """The lengths of the steps of the cycle, and of the last one back to its begin."""
    cycle = grid_cycle(w, h, wraps=wraps)
    assert sorted(cycle) == list(range(w * h))
    steps = []
    for here, there in zip(cycle, cycle[1:] + cycle[:1], strict=True):
        across, along = abs(here % w - there % w), abs(here // w - there // w)
        if wraps:
            across, along = min(across, w - across), min(along, h - along)
        steps.append(across + along)
    return steps


@pytest.mark.parametrize(("w", "h"), [each for each in SIDES if each != (1, 1)])
def test_on_a_torus_every_step_leads_to_a_neighbour(w: int, h: int) -> None:
    assert set(step_lengths(w, h, wraps=True)) == {1}


@pytest.mark.parametrize(("w", "h"), [each for each in SIDES if min(each) > 1])
def test_on_an_open_grid_all_steps_lead_to_neighbours_unless_both_sides_are_odd(
    w: int, h: int
) -> None:
    # A closed tour changes the colour of a chess board in each step of length 1, so an odd number
    # of positions needs one step of even length.
    longer = [step for step in step_lengths(w, h, wraps=False) if step > 1]
    assert longer == ([2] if w * h % 2 else [])


@pytest.mark.parametrize("count", range(2, 9))
def test_a_tour_of_an_open_line_passes_every_link_once_in_each_direction(count: int) -> None:
    for steps in (step_lengths(count, 1, wraps=False), step_lengths(1, count, wraps=False)):
        assert sum(steps) == 2 * (count - 1)
        assert max(steps) <= 2


def test_a_single_position_is_a_cycle() -> None:
    assert grid_cycle(1, 1) == grid_cycle(1, 1, wraps=True) == (0,)
