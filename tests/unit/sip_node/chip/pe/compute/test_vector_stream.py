"""Vectors of an operation: their number, and their bytes at the ports."""

from fractions import Fraction
from itertools import pairwise
from math import ceil, prod

import pytest

from runtime.core.trace import Operand
from sip_node.chip.fabric.server import Server
from sip_node.chip.mapping.strided_block import item_bytes
from sip_node.chip.pe.compute.vector_stream import Clock, StreamPaths, VectorStream

LANES = 128


def block(*shape: int, dtype: str = "f32") -> Operand:
    return Operand(0, shape, dtype)


def stream(*blocks: Operand) -> VectorStream:
    return VectorStream(blocks[:-1], blocks[-1], LANES)


@pytest.mark.parametrize("dtype", ["f16", "f32", "i8", "i64", "f64"])
@pytest.mark.parametrize("elements", [1, 64, 128, 129, 1000])
def test_all_bytes_are_in_the_vectors_and_each_has_those_of_its_elements(
    dtype: str, elements: int
) -> None:
    one = stream(block(elements, dtype=dtype), block(elements, dtype=dtype))
    per_vector = LANES // 2 if item_bytes(dtype) == 8 else LANES
    assert one.count == -(-elements // per_vector)
    nbytes = elements * item_bytes(dtype)
    assert one.fetched(one.count) == one.fetched_bytes == one.stored_from(1) == nbytes
    for vector in range(1, one.count + 1):
        done = min(vector * per_vector, elements) * item_bytes(dtype)
        assert one.fetched(vector) == nbytes - one.stored_from(vector + 1) == done


def test_a_repeated_operand_is_fetched_by_the_first_vectors_only() -> None:
    sums = stream(block(8, 256), block(1, 256), block(8, 256))
    assert sums.count == 16
    assert [sums.fetched(vector) for vector in (1, 2, 3, 4)] == [1024, 2048, 2560, 3072]


def test_the_rate_of_fetched_bytes_changes_only_behind_a_bend() -> None:
    operands = block(100), block(1000), block(10, 1000)
    adds = VectorStream(operands, block(10, 1000), LANES)
    fetched = [adds.fetched(vector) for vector in range(adds.count + 1)]
    sizes = [after - before for before, after in pairwise(fetched)]
    changes = {vector for vector, (one, other) in enumerate(pairwise(sizes), 1) if one != other}
    assert changes == {1, 7, 8, 78}
    assert adds.bends() == [7, 8, 78, 79]


def test_a_reduction_has_the_vectors_of_its_operand_and_a_broadcast_those_of_its_result() -> None:
    assert stream(block(64, 128), block(64)).count == 64
    assert stream(block(1), block(64, 128)).count == 64
    # 8 bytes on either side of a conversion.
    assert stream(block(128), block(128, dtype="f64")).count == 2


def test_pieces_that_are_joined_are_fetched_in_their_order() -> None:
    pieces = [block(100), block(300)]
    joined = VectorStream.joined(pieces, block(400), LANES)
    assert [joined.fetched(vector) for vector in range(1, joined.count + 1)] == [
        min(vector * LANES, 400) * 4 for vector in range(1, 5)
    ]
    assert prod(block(400).shape) * 4 == joined.fetched_bytes


def test_a_path_is_rounded_up_once() -> None:
    paths = StreamPaths(Server("fetch", 3), Clock(3), Server("store", 7))
    third, seventh = Fraction(1000, 3), Fraction(1000, 7)
    assert paths.ps(1) == ceil(third)
    assert paths.ps(2, 5, 4) == ceil(7 * third + 4 * seventh)
    assert paths.ps(3, 3, 7) == 3000
