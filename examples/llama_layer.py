"""The matrix products of one layer of Llama 2 70B, tensor parallel over all SIPs, and its two
all-reduces.

Run it with `kernbench --sips 8 --no-data examples/llama_layer.py decode` or `... prefill`. The
sizes are those of H. Touvron et al., Llama 2 (2023), and of its grouped-query attention: 8 query
heads use one head of keys and values. Softmax, norms and rotations are left out: they are no
products. The second time of a line is a bound: the roofline of the product on the whole SIP.
"""

import argparse
from dataclasses import dataclass

from kernbench import DPPolicy, torch

dist = torch.distributed
HIDDEN, FEED_FORWARD, HEADS, KV_HEADS, DEPTH = 8192, 28672, 64, 8, 128


@dataclass(frozen=True)
class Product:
    """(m, k) times (k, n); an all-reduce follows where the sums are divided over the ranks."""

    name: str
    m: int
    k: int
    n: int
    is_partial: bool = False

    def bound_ns(self) -> float:
        """The roofline: operations at the peak rate, or bytes at the bandwidth of all slices."""
        properties = torch.ahbm.get_device_properties()
        # 1 TFLOPS is 1000 operations a ns, 1 GB/s one byte a ns.
        operations_ns = self.m * self.k * self.n / properties.peak_gemm_tflops_per_pe / 500
        nbytes = 2 * (self.m * self.k + self.k * self.n + self.m * self.n)
        return max(operations_ns, nbytes / properties.hbm_gbs_per_pe) / properties.pe_count


def placement(n: int) -> DPPolicy:
    """The placement of a weight with `n` columns: blocks of whole tiles on as many PEs as divide
    it, so that every PE reads its own slice.
    """
    properties = torch.ahbm.get_device_properties()
    tiles, per_cube = n // properties.gemm_tile.n, properties.pes_per_cube
    pes = max(each for each in range(1, per_cube + 1) if not tiles % each)
    cubes = max(each for each in range(1, properties.cubes + 1) if not tiles % (each * pes))
    return DPPolicy(cube="column_wise", pe="column_wise", num_cubes=cubes, num_pes=pes)


def products(tokens: int, context: int, ranks: int, scale: int) -> list[Product]:
    """The products of one rank for `tokens` new tokens that attend to `context` tokens.

    `scale` divides the width of the layer and the numbers of its heads.
    """
    hidden, inner = HIDDEN // scale, FEED_FORWARD // scale // ranks
    heads, kv_heads = HEADS // scale // ranks, max(KV_HEADS // scale // ranks, 1)
    queries = tokens * heads // kv_heads
    attention = [
        Product("scores", queries, DEPTH, context),
        Product("values", queries, context, DEPTH),
    ]
    return [
        Product("queries, keys, values", tokens, hidden, (heads + 2 * kv_heads) * DEPTH),
        *(attention * kv_heads),
        Product("output", tokens, heads * DEPTH, hidden, is_partial=True),
        Product("gate and up", tokens, hidden, 2 * inner),
        Product("down", tokens, inner, hidden, is_partial=True),
    ]


def run() -> None:
    """Time every product of the layer, with the all-reduce that follows it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("phase", choices=("decode", "prefill"))
    parser.add_argument("--batch", type=int, default=1, help="sequences of the decode phase")
    parser.add_argument("--context", type=int, default=8192, help="tokens that decode attends to")
    parser.add_argument("--tokens", type=int, default=512, help="tokens of the prefill phase")
    parser.add_argument("--scale", type=int, default=1, help="divides the layer's width and heads")
    options = parser.parse_args()
    dist.init_process_group("ahbm")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    tokens, context = (
        (options.batch, options.context)
        if options.phase == "decode"
        else (options.tokens, options.tokens)
    )
    layer = products(tokens, context, ranks, options.scale)
    total_ns = bound_ns = 0.0
    for each in layer:
        x = torch.zeros(each.m, each.k, dtype=torch.float16)
        weight = torch.zeros(each.k, each.n, dtype=torch.float16, dp=placement(each.n))
        torch.ahbm.synchronize()
        began_ps = torch.ahbm.elapsed_ps()
        y = torch.matmul(x, weight)
        if each.is_partial:
            dist.all_reduce(y)
        torch.ahbm.synchronize()
        taken_ns = (torch.ahbm.elapsed_ps() - began_ps) / 1000
        total_ns, bound_ns = total_ns + taken_ns, bound_ns + each.bound_ns()
        if rank == 0:
            size = f"{each.m} x {each.k} x {each.n}"
            reduced = " and all-reduce" if each.is_partial else ""
            print(
                f"{each.name:24}{size:>20}{taken_ns:14,.1f} ns, {each.bound_ns():10,.1f}{reduced}"
            )
    if rank == 0:
        print(f"{options.phase:44}{total_ns:14,.1f} ns, {bound_ns:10,.1f}")


if __name__ == "__main__":
    run()
