"""Which batch of a rank waits for which, without a chip."""

from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.core.requests import Order
from sip_node.chip.host.batch import Batch, Batches

IN_TURN, AFTER_ALL, OVERLAPPING = Order
Kind = tuple[Order, frozenset[str]]
KINDS = st.tuples(st.sampled_from(Order), st.frozensets(st.sampled_from("abc"), max_size=2))


def batch(kind: Kind) -> Batch:
    order, tensors = kind
    return Batch((), 0, order=order, tensors=tensors)


def uses(order: Order, *tensors: str) -> Kind:
    return order, frozenset(tensors)


def at_work(*kinds: Kind) -> list[int]:
    """Of batches submitted in this order, the numbers of those that begin although none is complete."""
    batches = Batches()
    return [number for number, kind in enumerate(kinds) if batches.add(batch(kind))]


def test_batches_in_turn_run_one_after_the_other_whatever_they_use() -> None:
    assert at_work(uses(IN_TURN, "a"), uses(IN_TURN, "b"), uses(IN_TURN)) == [0]


def test_what_is_submitted_after_a_synchronous_collective_waits_for_it() -> None:
    assert at_work(uses(AFTER_ALL, "a"), uses(IN_TURN, "b")) == [0]


def test_what_uses_no_tensor_of_an_overlapping_collective_does_not_wait_for_it() -> None:
    assert at_work(uses(OVERLAPPING, "a", "b"), uses(IN_TURN, "c"), uses(IN_TURN, "c")) == [0, 1]


def test_what_uses_one_of_its_tensors_waits_and_so_does_everything_behind() -> None:
    assert at_work(uses(OVERLAPPING, "a", "b"), uses(IN_TURN, "b", "c"), uses(IN_TURN, "c")) == [0]


def test_a_collective_waits_for_everything_before_it() -> None:
    assert at_work(uses(IN_TURN, "a"), uses(OVERLAPPING, "b"), uses(AFTER_ALL, "c")) == [0]
    assert at_work(uses(OVERLAPPING, "a"), uses(OVERLAPPING, "b")) == [0]


def waits(earlier: Kind, later: Kind) -> bool:
    """The rule, as it is told."""
    return earlier[0] is not OVERLAPPING or later[0] is not IN_TURN or bool(earlier[1] & later[1])


@settings(deadline=None, max_examples=30)
@given(st.lists(KINDS, max_size=9), st.data())
def test_a_batch_begins_when_the_last_one_it_waits_for_is_complete(
    kinds: list[Kind], data: st.DataObject
) -> None:
    """In whatever order batches at work complete: those at work are those that wait for nothing, directly or through others."""
    submitted, batches = [batch(kind) for kind in kinds], Batches()
    begun = {number for number, each in enumerate(submitted) if batches.add(each)}
    number_of = {id(each): number for number, each in enumerate(submitted)}
    left = set(range(len(kinds)))
    while left:
        reached = {
            later
            for later in left
            if not any(waits(kinds[earlier], kinds[later]) for earlier in left if earlier < later)
        }
        assert begun & left == reached
        assert batches.earliest is submitted[min(left)]
        done = data.draw(st.sampled_from(sorted(reached)))
        left.remove(done)
        ready = [number_of[id(each)] for each in batches.complete(submitted[done])]
        assert ready == sorted(ready)
        begun.update(ready)
    assert batches.earliest is None
