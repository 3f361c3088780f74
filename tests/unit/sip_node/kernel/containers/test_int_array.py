from hypothesis import given
from hypothesis import strategies as st

from sip_node.kernel.containers.int_array import IntArray

integers = st.integers(-(1 << 63), (1 << 63) - 1)


def array_of(values: list[int]) -> IntArray:
    array = IntArray()
    for index, value in enumerate(values):
        array.replace(index, index, value)
    return array


@given(st.lists(integers, max_size=40), integers)
def test_the_first_integer_from_a_value_on_is_that_of_a_search_from_the_front(
    values: list[int], value: int
) -> None:
    array = array_of(sorted(values))
    assert array.size == len(values)
    assert array.first_from(value) == sum(each < value for each in values)


@given(st.lists(st.integers(0, 99), max_size=40), st.data())
def test_one_integer_replaces_several(values: list[int], data: st.DataObject) -> None:
    array, values = array_of(sorted(values)), sorted(values)
    first = data.draw(st.integers(0, len(values)))
    last = data.draw(st.integers(first, len(values)))
    # Between its neighbours, so that the array still rises.
    value = values[first - 1] if first else -1
    array.replace(first, last, value)
    values[first:last] = [value]
    assert array.size == len(values)
    for each in range(-2, 101):
        assert array.first_from(each) == sum(value < each for value in values)


@given(st.lists(st.integers(0, 5), max_size=40), st.lists(st.integers(0, 5), max_size=40))
def test_integers_are_removed_one_at_a_time(values: list[int], removed: list[int]) -> None:
    array, values = IntArray(), sorted(values)
    for value in values:
        array.append(value)
    for value in removed:
        assert array.remove(value) == (value in values)
        if value in values:
            values.remove(value)
        assert array.size == len(values)
    # The others keep their order.
    for value in range(7):
        assert array.first_from(value) == sum(each < value for each in values)
