"""Bounds of an attention layer: the least time by one engine, from the topology file alone.

All PEs work all the time, none waits, and no element is computed twice or in vain. A score takes
`depth` multiplications for q k^T and as many for the product with v. The vector engine computes for
each score the maximum, the difference, the exponential and the conversion. The memory
reads and writes each tensor once: for 8 KV heads of 128 columns in float16 a decode reads 4096
bytes of k and v for each token of each user.
"""

from kernbench.benches.attention.layer import AttentionLayer
from kernbench.oracle.theory.bandwidths import own_memory_gbs
from kernbench.oracle.theory.engines.attention import ITEM_BYTES, score_times
from kernbench.oracle.theory.roofline import bytes_ps
from kernbench.oracle.theory.topology_file import TopologyFile
from kernbench.studies.milestone_gqa_llama70b.headline_rows import AttentionBounds


def attention_bounds(
    file: TopologyFile, layer: AttentionLayer, sips: int, *, is_decode: bool
) -> AttentionBounds:
    """The bounds of the whole layer on all PEs of `sips` SIPs."""
    pes = file.cubes * file.pes_per_cube * sips
    queries = 1 if is_decode else layer.tokens
    # Query i of a causal prefill sees i + 1 keys; the query of a decode sees all of them.
    pairs = layer.tokens if is_decode else layer.tokens * (layer.tokens + 1) // 2
    scores = layer.heads * layer.batch * pairs
    times = score_times(file, scores, layer.depth)
    rows = 2 * layer.heads * queries + 2 * layer.kv_heads * layer.tokens
    nbytes = rows * layer.batch * layer.depth * ITEM_BYTES
    memory_ps = bytes_ps(nbytes, own_memory_gbs(file))
    return AttentionBounds(
        gemm_ps=float(times.gemm_ps / pes),
        vector_ps=float(times.vector_ps / pes),
        memory_ps=float(memory_ps / pes),
    )
