"""The blocks of kernels on rows that a list of numbers selects."""

from runtime.device.kernels.rows import RowSum, runs_of, sum_blocks


def test_neighbouring_targets_are_one_run():
    assert runs_of([3, 4, 5, 9, 11, 12]) == [(3, 0, 3), (9, 3, 4), (11, 4, 6)]


def test_sums_fill_blocks_and_rows_that_stand_alone_come_first():
    sums: list[RowSum] = [(0, (5, 6)), (1, (7,)), (2, (8, 9, 10)), (3, (11,))]
    assert sum_blocks(sums, 4) == [
        [(1, (7,)), (3, (11,)), (0, (5, 6))],
        [(2, (8, 9, 10))],
    ]
