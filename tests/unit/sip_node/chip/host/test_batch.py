"""Which batch of a rank waits for which, without a chip."""

from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.core.requests import StreamOrder
from sip_node.chip.host.batch import Batch, Streams

COMPUTE, BARRIER, COLLECTIVE = StreamOrder
Kind = tuple[StreamOrder, frozenset[str]]
KINDS = st.tuples(st.sampled_from(StreamOrder), st.frozensets(st.sampled_from("abc"), max_size=2))


def batch(kind: Kind) -> Batch:
    order, tensors = kind
    return Batch((), 0, order=order, tensors=tensors)


def uses(order: StreamOrder, *tensors: str) -> Kind:
    return order, frozenset(tensors)


def at_work(*kinds: Kind) -> list[int]:
    """Of streams submitted in this order, the numbers of those that begin although none is complete."""
    streams = Streams()
    return [number for number, kind in enumerate(kinds) if streams.submit(batch(kind))]


def test_batches_in_turn_run_one_after_the_other_whatever_they_use() -> None:
    assert at_work(uses(COMPUTE, "a"), uses(COMPUTE, "b"), uses(COMPUTE)) == [0]


def test_what_is_submitted_after_a_synchronous_collective_waits_for_it() -> None:
    assert at_work(uses(BARRIER, "a"), uses(COMPUTE, "b")) == [0]


def test_what_uses_no_tensor_of_an_overlapping_collective_does_not_wait_for_it() -> None:
    assert at_work(uses(COLLECTIVE, "a", "b"), uses(COMPUTE, "c"), uses(COMPUTE, "c")) == [0, 1]


def test_what_uses_one_of_its_tensors_waits_and_so_does_everything_behind() -> None:
    assert at_work(uses(COLLECTIVE, "a", "b"), uses(COMPUTE, "b", "c"), uses(COMPUTE, "c")) == [0]


def test_a_collective_waits_for_everything_before_it() -> None:
    assert at_work(uses(COMPUTE, "a"), uses(COLLECTIVE, "b"), uses(BARRIER, "c")) == [0]
    assert at_work(uses(COLLECTIVE, "a"), uses(COLLECTIVE, "b")) == [0]


def waits(earlier: Kind, later: Kind) -> bool:
    """The rule, as it is told."""
    return earlier[0] is not COLLECTIVE or later[0] is not COMPUTE or bool(earlier[1] & later[1])


@settings(deadline=None, max_examples=30)
@given(st.lists(KINDS, max_size=9), st.data())
def test_a_batch_begins_when_the_last_one_it_waits_for_is_complete(
    kinds: list[Kind], data: st.DataObject
) -> None:
    """In whatever order streams at work complete: those at work are those that wait for nothing, directly or through others."""
    submitted, streams = [batch(kind) for kind in kinds], Streams()
    begun = {number for number, each in enumerate(submitted) if streams.submit(each)}
    number_of = {id(each): number for number, each in enumerate(submitted)}
    left = set(range(len(kinds)))
    while left:
        reached = {
            later
            for later in left
            if not any(waits(kinds[earlier], kinds[later]) for earlier in left if earlier < later)
        }
        assert begun & left == reached
        assert streams.earliest is submitted[min(left)]
        done = data.draw(st.sampled_from(sorted(reached)))
        left.remove(done)
        ready = [number_of[id(each)] for each in streams.complete(submitted[done])]
        assert ready == sorted(ready)
        begun.update(ready)
    assert streams.earliest is None
