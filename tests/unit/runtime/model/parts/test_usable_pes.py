"""The PEs that placements deal with, where some are down."""

import pytest

from runtime.model.parts.usable_pes import UsablePes
from tests.support.topologies import variant

DOWN = {"down": True}


def usable(*names: str, sip: int = 0) -> UsablePes:
    return UsablePes(variant(overrides=dict.fromkeys(names, DOWN)), sip)


def test_a_whole_machine_has_all_its_pes() -> None:
    pes = UsablePes(variant(), 1)
    assert (pes.is_whole, pes.cubes, pes.per_cube) == (True, 16, 8)
    assert [pes.at(number) for number in (0, 7, 8, 127)] == [(0, 0), (0, 7), (1, 0), (15, 7)]


def test_a_cube_that_is_down_is_left_out_of_the_numbers() -> None:
    pes = usable("cube1")
    assert (pes.is_whole, pes.cubes, pes.per_cube) == (False, 15, 8)
    assert [pes.at(number) for number in (7, 8, 119)] == [(0, 7), (2, 0), (15, 7)]


def test_every_cube_gives_as_many_pes_as_the_cube_with_the_fewest() -> None:
    pes = usable("cube1.pe3")
    assert (pes.cubes, pes.per_cube) == (16, 7)
    assert [pes.at(number) for number in (6, 9, 10, 14)] == [(0, 6), (1, 2), (1, 4), (2, 0)]


def test_a_pe_that_is_down_in_one_sip_has_no_tensors_on_any() -> None:
    pes = usable("sip1.cube1.pe3")
    assert (1, 3) not in pes
    # A program may still name it where it works.
    pes.require([(1, 3)], "a launch")
    with pytest.raises(ValueError, match=r"a launch needs sip1\.cube1\.pe3, which is down"):
        usable("sip1.cube1.pe3", sip=1).require([(1, 3)], "a launch")
