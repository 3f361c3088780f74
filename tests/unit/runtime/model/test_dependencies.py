"""Dependency graphs: cycles and reachable ends."""

from runtime.model.dependencies import Dependencies, reachable_ends


def test_a_vertex_reaches_the_ends_of_all_its_paths() -> None:
    after: Dependencies = {"a": {"b", "c"}, "b": {"d", "end 1"}, "c": {"d"}, "d": {"end 2"}}
    ends = reachable_ends(after)
    assert ends is not None
    assert ends["a"] == {"end 1", "end 2"}
    assert (ends["b"], ends["c"]) == ({"end 1", "end 2"}, {"end 2"})
    assert ends["end 1"] == {"end 1"}


def test_a_vertex_with_no_follower_at_all_reaches_nothing() -> None:
    assert reachable_ends({"a": set()}) == {"a": frozenset()}


def test_a_cycle_has_no_ends_wherever_the_search_begins() -> None:
    assert reachable_ends({"a": {"b"}, "b": {"c"}, "c": {"b"}}) is None
    assert reachable_ends({"c": {"b"}, "b": {"c"}}) is None
    assert reachable_ends({"a": {"a"}}) is None


def test_two_paths_to_one_vertex_are_no_cycle() -> None:
    assert reachable_ends({"a": {"b", "c"}, "b": {"c"}, "c": {"d"}}) is not None


def test_a_path_may_be_longer_than_the_stack_of_python() -> None:
    ends = reachable_ends({number: {number + 1} for number in range(20_000)})
    assert ends is not None
    assert ends[0] == {20_000}
