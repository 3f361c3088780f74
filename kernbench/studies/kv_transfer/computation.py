"""The computation of a layer of a prefill: its kernel, and the work of each PE.

A stand-in with the time of a layer on its roofline: the products of all PEs at the peak of their
GEMM engines, or the load of all weights from HBM, whichever takes longer. That is the shortest
computation, so the hardest one to hide a transfer behind. A kernel passes this time with the vector
engine, since a layer of llama-70B has millions of tiles, and then writes the keys and values.
"""

from fractions import Fraction
from math import ceil
from typing import NamedTuple

from kernbench import tl
from kernbench.oracle.theory.bandwidths import gemm_bound_ps, own_read_gbs
from kernbench.oracle.theory.engines.vector_engine import VectorEngine
from kernbench.oracle.theory.roofline import bytes_ps
from kernbench.oracle.theory.topology_file import TopologyFile
from kernbench.studies.llama70b_layer.shape import ITEM_BYTES, LayerShape
from runtime.core.dtypes import float32

LAYER_STEP = 16
"""K and V of layer i are those of layer 0 plus i times this: each layer has its own elements."""
_VECTORS, _BLOCK = 512, 1 << 15
"""Most vectors of an operation that passes time, most elements of K and V in TCM."""


class LayerWork(NamedTuple):
    """The work of a PE: square roots of `vectors` vectors of `lanes` elements, and `kv` elements of
    K and V for each rank of the other side that gets heads of the SIP.
    """

    vectors: int
    lanes: int
    kv: int


def layer_ps(file: TopologyFile, shape: LayerShape, sips: int) -> Fraction:
    """The roofline of a layer on all PEs of `sips` SIPs.

    New tokens pass the weights, and each sees all tokens before it, with twice `depth`
    multiplications for each head.
    """
    before = shape.context - shape.tokens
    pairs = shape.tokens * before + shape.tokens * (shape.tokens + 1) // 2
    macs = shape.tokens * shape.weights + 2 * shape.heads * shape.depth * pairs
    products_ps = gemm_bound_ps(file, macs)
    weights_ps = bytes_ps(shape.weights * ITEM_BYTES, own_read_gbs(file))
    return max(products_ps, weights_ps) / (sips * file.cubes * file.pes_per_cube)


def layer_work(file: TopologyFile, shape: LayerShape, time_ps: Fraction, heads: int) -> LayerWork:
    """The work of each PE of a layer that takes `time_ps`, with `heads` heads for each rank."""
    engine = VectorEngine(file)
    vector_ps = engine.engine_ps(engine.cycles("sqrt"))
    return LayerWork(
        vectors=ceil(time_ps / vector_ps),
        lanes=engine.lanes,
        kv=2 * heads * shape.context * shape.depth // (file.cubes * file.pes_per_cube),
    )


def prefill_layer(work: LayerWork, number: int, *caches: tl.Pointer) -> None:
    """Kernel: layer `number`. `caches` are K and V of layer 0 for each rank that gets heads, then
    those to write.
    """
    ones = tl.full(min(work.vectors, _VECTORS) * work.lanes, 1, float32)
    for begin in range(0, work.vectors, _VECTORS):
        with tl.scratch():
            tl.sqrt(ones[: min(_VECTORS, work.vectors - begin) * work.lanes])
    pe = tl.program_id(1) * tl.num_programs(0) + tl.program_id(0)
    ranks = len(caches) // 2
    for source, target in zip(caches[:ranks], caches[ranks:], strict=True):
        for begin in range(pe * work.kv, (pe + 1) * work.kv, _BLOCK):
            count = min(_BLOCK, (pe + 1) * work.kv - begin)
            with tl.scratch():
                elements = tl.load(source + begin, count)
                tl.store(target + begin, elements + LAYER_STEP * number)
