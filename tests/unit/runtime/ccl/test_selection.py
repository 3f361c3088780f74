from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.ccl.config import parse_ccl
from runtime.ccl.selection import CallShape, Choice, matching_row, unreachable_rows
from runtime.core.errors import ConfigError
from tests.support.ccl_texts import DEFAULTS, RING

SELECTION = """
selection:
  default: ring
  by_size:
    all_reduce:
      - {up_to_bytes: 64, algorithm: tree}
      - {up_to_bytes: 512, algorithm: ring}
    broadcast:
      - {algorithm: tree}
"""
TREE = RING.replace("algorithms:\n", "").replace("  ring:", "  tree:")
CHOOSING = DEFAULTS.replace("algorithm: ring", "algorithm: auto") + SELECTION + RING + TREE


def error_of(text: str) -> str:
    with pytest.raises(ConfigError) as raised:
        parse_ccl(text, "ccl.yaml")
    return str(raised.value)


def test_auto_takes_the_first_row_whose_limit_is_not_exceeded_and_else_the_default() -> None:
    ccl = parse_ccl(CHOOSING, "ccl.yaml")
    chosen = [
        ccl.choose("auto", "all_reduce", CallShape(nbytes, 4)) for nbytes in (1, 64, 65, 512, 513)
    ]
    assert chosen == ["tree", "tree", "ring", "ring", "ring"]
    assert ccl.choose("auto", "broadcast", CallShape(1 << 20, 4)) == "tree"
    assert ccl.choose("auto", "reduce", CallShape(1, 4)) == "ring"
    assert ccl.choose("tree", "reduce", CallShape(1, 4)) == "tree"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "default:",
            "defaults:",
            "selection.defaults: unknown key; did you mean 'default'? (and 1 more)",
        ),
        (
            "by_size:",
            "by_sizes:",
            "selection.by_sizes: unknown key; did you mean 'by_size'? (and 1 more)",
        ),
        (
            "{up_to_bytes",
            "{upto_bytes",
            (
                "selection.by_size.all_reduce[0].upto_bytes: unknown key; "
                "did you mean 'up_to_bytes'?"
            ),
        ),
        (
            "all_reduce:",
            "allreduce:",
            "selection.by_size.allreduce: no collective 'allreduce'; did you mean 'all_reduce'?",
        ),
        (
            "      - {algorithm: tree}",
            "      []",
            "selection.by_size.broadcast: this list is empty",
        ),
        (
            "algorithm: tree}",
            "algorithm: trea}",
            "selection.by_size.all_reduce[0].algorithm: no algorithm 'trea'",
        ),
        (
            "default: ring",
            "default: auto",
            "selection.default: 'auto' cannot choose itself; known: ring, tree",
        ),
        (
            "up_to_bytes: 512",
            "up_to_bytes: 64",
            (
                "selection.by_size.all_reduce[1].up_to_bytes: is 64, but a row before matches "
                "calls up to 64 bytes: no call reaches this row"
            ),
        ),
        (
            "up_to_bytes: 64, ",
            "",
            "selection.by_size.all_reduce[0]: this key is missing: up_to_bytes; only the last row",
        ),
        (
            SELECTION,
            "",
            "defaults.algorithm: 'auto' needs the section `selection`, which is missing",
        ),
        (
            "  tree:\n",
            "  auto:\n",
            (
                "algorithms.auto: 'auto' stands for the section `selection`; an algorithm needs "
                "another name"
            ),
        ),
    ],
)
def test_a_wrong_selection_is_one_line_that_names_the_row(old: str, new: str, message: str) -> None:
    assert error_of(CHOOSING.replace(old, new, 1)).startswith(f"ccl.yaml: {message}")


BY_RANKS = (
    Choice(algorithm="tree", up_to_bytes=64, up_to_ranks=2),
    Choice(algorithm="mesh", up_to_ranks=2),
    Choice(algorithm="ring", up_to_bytes=512),
    Choice(algorithm="tree"),
)


@pytest.mark.parametrize(
    ("nbytes", "ranks", "algorithm"),
    [
        (64, 2, "tree"),
        (65, 2, "mesh"),
        (1 << 20, 1, "mesh"),
        (64, 3, "ring"),
        (512, 8, "ring"),
        (513, 8, "tree"),
    ],
)
def test_a_row_has_limits_of_bytes_and_ranks(nbytes: int, ranks: int, algorithm: str) -> None:
    row = matching_row(BY_RANKS, CallShape(nbytes, ranks))
    assert row is not None
    assert row.algorithm == algorithm


@pytest.mark.parametrize(
    ("call", "algorithm"),
    [
        (CallShape(64, 4, 2, on_grid=True), "mesh"),
        (CallShape(63, 4, 2, on_grid=True), "ring"),
        (CallShape(64, 4, 1, on_grid=True), "ring"),
        (CallShape(64, 4, 2, on_grid=False), "ring"),
    ],
)
def test_a_row_may_be_for_tensors_on_several_cubes_of_a_grid_of_sips(
    call: CallShape, algorithm: str
) -> None:
    table = (
        Choice(algorithm="mesh", from_bytes=64, from_cubes=2, on_grid=True),
        Choice(algorithm="ring"),
    )
    row = matching_row(table, call)
    assert row is not None
    assert row.algorithm == algorithm


def test_queues_for_a_grid_are_reserved_in_groups_of_a_grid_only() -> None:
    grid_row = "      - {from_cubes: 2, on_grid: true, algorithm: mesh}\n"
    mesh = TREE.replace("tree:", "mesh:")
    text = CHOOSING.replace("    all_reduce:\n", f"    all_reduce:\n{grid_row}") + mesh
    ccl = parse_ccl(text, "ccl.yaml")
    assert ccl.used_by("auto") == ("ring", "tree")
    assert ccl.used_by("auto", on_grid=True) == ("ring", "mesh", "tree")


limits = st.none() | st.integers(1, 4)
rows = st.builds(
    Choice,
    algorithm=st.just("ring"),
    up_to_bytes=limits,
    up_to_ranks=limits,
    from_bytes=limits,
    from_cubes=st.none() | st.integers(2, 3),
    on_grid=st.booleans(),
)


@given(st.lists(rows, min_size=1, max_size=4))
def test_rows_that_are_reported_are_those_which_no_call_reaches(table: list[Choice]) -> None:
    calls = [
        CallShape(nbytes, ranks, cubes, on_grid)
        for nbytes, ranks, cubes in product(range(1, 7), range(1, 7), range(1, 5))
        for on_grid in (False, True)
    ]
    for index in range(len(table)):
        # Rows are compared by their place: two equal rows are one value.
        reached = any(
            table[index].matches(call) and not any(before.matches(call) for before in table[:index])
            for call in calls
        )
        reported = list(unreachable_rows("rows", table[: index + 1]))
        earlier = list(unreachable_rows("rows", table[:index]))
        # A table that has a problem before is reported for that one.
        if not earlier:
            # One row before must cover it; the union of two rows before is not looked at.
            row = table[index]
            empty = (row.from_bytes or 0) > (row.up_to_bytes or row.from_bytes or 0)
            covered = any(before.covers(row) for before in table[:index])
            assert bool(reported) == (covered or empty)
            assert not ((covered or empty) and reached)


def test_the_message_of_an_unreachable_row_has_the_limits_of_the_row_before() -> None:
    table = (
        Choice(algorithm="ring", up_to_bytes=2048, up_to_ranks=4),
        Choice(algorithm="tree", up_to_bytes=1024, up_to_ranks=2),
    )
    assert list(unreachable_rows("selection.by_size.reduce", table)) == [
        (
            "selection.by_size.reduce[1].up_to_bytes",
            (
                "is 1024, but a row before matches calls up to 2,048 bytes and up to 4 ranks: "
                "no call reaches this row"
            ),
        )
    ]
