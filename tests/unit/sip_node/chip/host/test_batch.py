"""The streams of a rank without a chip: which batch waits for which."""

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


def begun_at_once(*kinds: Kind) -> list[int]:
    """The indexes of the batches that begin at submission, while none is complete."""
    streams = Streams()
    return [number for number, kind in enumerate(kinds) if streams.submit(batch(kind))]


def test_the_compute_stream_is_serial() -> None:
    assert begun_at_once(uses(COMPUTE, "a"), uses(COMPUTE, "b"), uses(COMPUTE)) == [0]


def test_every_batch_waits_for_a_barrier_before_it() -> None:
    assert begun_at_once(uses(BARRIER, "a"), uses(COMPUTE, "b")) == [0]


def test_a_batch_without_a_common_tensor_overtakes_a_collective() -> None:
    assert begun_at_once(uses(COLLECTIVE, "a", "b"), uses(COMPUTE, "c"), uses(COMPUTE, "c")) == [
        0,
        1,
    ]


def test_a_batch_with_a_common_tensor_waits_and_so_does_its_stream() -> None:
    assert begun_at_once(
        uses(COLLECTIVE, "a", "b"), uses(COMPUTE, "b", "c"), uses(COMPUTE, "c")
    ) == [0]


def test_a_collective_waits_for_all_earlier_batches() -> None:
    assert begun_at_once(uses(COMPUTE, "a"), uses(COLLECTIVE, "b"), uses(BARRIER, "c")) == [0]
    assert begun_at_once(uses(COLLECTIVE, "a"), uses(COLLECTIVE, "b")) == [0]


def waits(earlier: Kind, later: Kind) -> bool:
    """The rule for two batches."""
    return earlier[0] is not COLLECTIVE or later[0] is not COMPUTE or bool(earlier[1] & later[1])


@settings(deadline=None, max_examples=30)
@given(st.lists(KINDS, max_size=9), st.data())
def test_a_batch_begins_when_the_last_batch_that_it_waits_for_is_complete(
    kinds: list[Kind], data: st.DataObject
) -> None:
    """In every order of completion the batches that have begun are those without a wait.

    A batch waits directly or through others.
    """
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
