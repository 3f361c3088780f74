"""The results that a layout of shards keeps."""

from runtime.device.rank.shard_layout import ShardLayout


def test_a_result_is_derived_once_for_each_key() -> None:
    layout, calls = ShardLayout((), 0), list[int]()

    def derive(number: int) -> int:
        calls.append(number)
        return -number

    for number in (1, 2, 1, 2):
        assert layout.derived(("window", number), lambda number=number: derive(number)) == -number
    assert calls == [1, 2]


def test_a_program_with_ever_new_windows_keeps_the_latest_ones() -> None:
    layout, calls = ShardLayout((), 0), list[int]()
    for number in (*range(1000), 999, 0):
        layout.derived(number, lambda number=number: calls.append(number))
    assert calls == [*range(1000), 0]


def test_an_error_is_raised_by_each_call() -> None:
    layout = ShardLayout((), 0)
    refused = 0
    for _ in range(2):
        try:
            layout.derived("window", lambda: 1 // 0)
        except ZeroDivisionError:
            refused += 1
    assert refused == 2
