"""The closed form of chains: for full vectors, and for one operation."""

from fractions import Fraction
from math import ceil

import pytest

from kernbench.oracle.theory.engines.vector_chains import ChainTimes, PassWork
from kernbench.oracle.theory.engines.vector_engine import Elements, VectorEngine
from kernbench.oracle.theory.topology_file import TopologyFile
from tests.support.topologies import default_text

FILE = TopologyFile.of(default_text())
LANES, FILL, TREE = 128, 4, 7


@pytest.mark.parametrize("vectors", [1, 2, 7])
@pytest.mark.parametrize("bw_gbs", [128, 512, 2048])
def test_full_vectors_take_fill_and_the_slowest_stage(vectors: int, bw_gbs: int) -> None:
    size = vectors * LANES
    work = PassWork(
        [Elements(size), Elements(size)], [("sub", size), ("exp", size)], [Elements(size, 2)]
    )
    fetch_ns, store_ns = Fraction(8 * LANES, bw_gbs), Fraction(2 * LANES, bw_gbs)
    slowest_ns = max(fetch_ns, 1 + 8, store_ns)
    expected_ps = 1000 * (fetch_ns + FILL + 9 + store_ns + (vectors - 1) * slowest_ns)
    times = ChainTimes(FILE.with_values({"pe.fetch_store.bw_gbs": bw_gbs}))
    assert times.chain_ps([work]) == ceil(expected_ps)


def test_one_operation_takes_its_time() -> None:
    engine, times = VectorEngine(FILE), ChainTimes(FILE)
    size, row = 1000, 250
    operands = [Elements(size), Elements(row)]
    one = PassWork(operands, [("mul", size)], [Elements(size)])
    assert times.chain_ps([one]) == engine.elementwise_ps("mul", operands, Elements(size))
    reduced = PassWork([Elements(size)], [("sum", size)], reduces=True, kept=[Elements(4)])
    assert times.chain_ps([reduced]) == engine.reduction_ps("sum", Elements(size), Elements(4))


def test_the_online_softmax_of_128_rows_takes_two_passes() -> None:
    size, rows = 128 * 128, 128
    scores, each_row = Elements(size), Elements(rows)
    largest = PassWork(
        [scores, each_row, each_row],
        [("max", size)],
        reduces=True,
        tail=[(name, rows) for name in ("maximum", "sub", "exp2", "mul")],
        kept=[each_row, each_row],
    )
    weights = PassWork(
        [scores],
        [(name, size) for name in ("sub", "exp2", "sum", "cast")],
        [Elements(size, 2)],
        reduces=True,
        tail=[("add", rows)],
        kept=[each_row],
    )
    # One fetch of a vector, or of one of each operand; 128 vectors of 1 and of 11 cycles.
    first_ns, second_ns = 3 + FILL + 128 + TREE + 11, 1 + FILL + 128 * 11 + TREE + 1 + 1
    assert ChainTimes(FILE).chain_ps([largest, weights]) == 1000 * (first_ns + second_ns)
