"""A panel of grouped-query attention as a run of its own, for `kernbench why`, `trace` and `web`.

kernbench --sips 1 examples/gqa_panel.py                # decode on the eight PEs of a cube
kernbench --sips 1 examples/gqa_panel.py --prefill

The study milestone-gqa-llama70b runs the same kernels at four scales.
"""

import argparse

import numpy as np

from kernbench import DPPolicy, torch
from kernbench.benches.attention.reference import attention
from kernbench.benches.attention.ring_decode import ring_decode
from kernbench.benches.attention.ring_prefill import RankShape, ring_prefill
from kernbench.benches.attention.rings import pe_ring

PES = 8
KEYS = 16
"""Keys of each PE; in a prefill also queries."""
DEPTH = 64


def run(*, prefill: bool) -> None:
    """Spread Q, K and V over a ring of PEs, run the kernel, and compare with float64."""
    torch.distributed.init_process_group("ahbm")
    rng = np.random.default_rng(7)
    queries = PES * KEYS if prefill else 1
    q, k, v = (
        rng.uniform(-1, 1, (rows, DEPTH)).astype(np.float32)
        for rows in (queries, PES * KEYS, PES * KEYS)
    )
    split, copied = DPPolicy(num_cubes=1, pe="row_wise"), DPPolicy(num_cubes=1)
    on_device = [
        torch.from_numpy(each, dp=placement)
        for each, placement in zip(
            (q, k, v), (split if prefill else copied, split, split), strict=True
        )
    ]
    # Every PE of a decode has the whole result, a row of `out`.
    out = torch.empty(queries if prefill else PES, DEPTH, dtype=torch.float32, dp=split)
    shape = RankShape(KEYS if prefill else 1, KEYS, DEPTH)
    arguments = (*on_device, out, shape, pe_ring(PES))
    if prefill:
        launch = torch.launch("ring_prefill", ring_prefill, *arguments, queues="pe_ring")
    else:
        launch = torch.launch("ring_decode", ring_decode, *arguments, PES * KEYS, queues="pe_ring")
    exact = attention(q, k, v)
    # float32 sums of 128 products; the values are below one.
    np.testing.assert_allclose(out.numpy(), np.broadcast_to(exact, out.shape), rtol=0, atol=2e-6)
    name = "prefill" if prefill else "decode"
    print(f"single-user {name} on {PES} PEs: {launch.pe_exec_ps / 1000:,.1f} ns")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--prefill", action="store_true", help="prefill instead of decode")
    run(**vars(parser.parse_args()))
