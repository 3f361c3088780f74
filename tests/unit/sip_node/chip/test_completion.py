import pytest

from sip_node.chip.completion import Completion, all_of, completed


def test_callbacks_run_at_completion_in_the_order_in_which_they_were_added() -> None:
    done, seen = Completion[int](), list[tuple[str, int]]()
    for name in "ab":
        done.then(lambda completion, name=name: seen.append((name, completion.value)))
    assert seen == []
    done.complete(7)
    assert seen == [("a", 7), ("b", 7)]


def test_a_callback_on_what_is_done_runs_at_once() -> None:
    seen: list[int] = []
    completed(3).then(lambda completion: seen.append(completion.value))
    assert seen == [3]


def test_a_completion_completes_once() -> None:
    done = completed(1)
    with pytest.raises(AssertionError, match="completes once"):
        done.complete(2)


def test_all_of_nothing_is_done() -> None:
    assert all_of([]).done
    assert all_of([]).value == []


def test_all_of_several_waits_for_the_last_and_keeps_their_order() -> None:
    parts = [Completion[str]() for _ in range(3)]
    together = all_of(parts)
    for index in (2, 0, 1):
        assert not together.done
        parts[index].complete(f"part {index}")
    assert together.value == ["part 0", "part 1", "part 2"]


def test_the_first_error_of_several_wins_and_the_rest_is_ignored() -> None:
    parts = [Completion[str]() for _ in range(3)]
    together = all_of(parts)
    parts[1].fail(LookupError("first"))
    parts[0].fail(LookupError("second"))
    parts[2].complete("late")
    assert str(together.error) == "first"
