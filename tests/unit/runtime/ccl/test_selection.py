import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.ccl.config import parse_ccl
from runtime.ccl.selection import Choice, matching_row, unreachable_rows
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
    chosen = [ccl.choose("auto", "all_reduce", nbytes, 4) for nbytes in (1, 64, 65, 512, 513)]
    assert chosen == ["tree", "tree", "ring", "ring", "ring"]
    assert (ccl.choose("auto", "broadcast", 1 << 20, 4), ccl.choose("auto", "reduce", 1, 4)) == (
        "tree",
        "ring",
    )
    assert ccl.choose("tree", "reduce", 1, 4) == "tree"


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
                "calls of up to 64 bytes: no call reaches this row"
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
    row = matching_row(BY_RANKS, nbytes, ranks)
    assert row is not None
    assert row.algorithm == algorithm


limits = st.none() | st.integers(1, 4)
rows = st.builds(Choice, algorithm=st.just("ring"), up_to_bytes=limits, up_to_ranks=limits)


@given(st.lists(rows, min_size=1, max_size=4))
def test_rows_that_are_reported_are_those_which_no_call_reaches(table: list[Choice]) -> None:
    calls = [(nbytes, ranks) for nbytes in range(1, 7) for ranks in range(1, 7)]
    for index in range(len(table)):
        # Rows are compared by their place: two equal rows are one value.
        reached = any(
            table[index].matches(*call)
            and not any(before.matches(*call) for before in table[:index])
            for call in calls
        )
        reported = list(unreachable_rows("rows", table[: index + 1]))
        earlier = list(unreachable_rows("rows", table[:index]))
        # A table that has a problem before is reported for that one.
        if not earlier:
            # One row before must cover it; the union of two rows before is not looked at.
            covered = any(before.covers(table[index]) for before in table[:index])
            assert bool(reported) == covered
            assert not (covered and reached)


def test_the_message_of_an_unreachable_row_has_the_limits_of_the_row_before() -> None:
    table = (
        Choice(algorithm="ring", up_to_bytes=2048, up_to_ranks=4),
        Choice(algorithm="tree", up_to_bytes=1024, up_to_ranks=2),
    )
    assert list(unreachable_rows("selection.by_size.reduce", table)) == [
        (
            "selection.by_size.reduce[1].up_to_bytes",
            (
                "is 1024, but a row before matches calls of up to 2,048 bytes and 4 ranks: "
                "no call reaches this row"
            ),
        )
    ]
