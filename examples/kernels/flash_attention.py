"""Flash attention forward on one PE, causal or not: bound by the exponentials of the vector engine.

    kernbench --sips 1 examples/kernels/flash_attention.py
    kernbench --sips 1 examples/kernels/flash_attention.py --causal

The loop, a software pipeline over blocks of queries and keys, is `flash` in
`runtime.device.kernels.attention.flash`.
"""

import argparse

import numpy as np

from kernbench import PeRoofline, tl, torch
from kernbench.benches.attention.grouped_prefill import store_attended
from kernbench.benches.attention.reference import attention
from runtime.device.kernels.attention.flash import BlockShape, FlashItem
from runtime.model.placement import ONE_PE

ROWS, WIDTH = 64, 320
"""Queries, and most keys, of a block of scores; with more than 128 columns TCM has fewer keys."""


def flash_attention(  # noqa: PLR0917 - the arguments of a launch are positional
    q: tl.Pointer,
    k: tl.Pointer,
    v: tl.Pointer,
    out: tl.Pointer,
    tokens: int,
    depth: int,
    is_causal: bool,  # noqa: FBT001 - see above
) -> None:
    """Kernel: the attention of `tokens` queries of one head over as many keys."""
    # In a causal order up and down again, a short block of queries is the first and the last one:
    # the engines begin early, and end together.
    up = range(0, tokens, ROWS)
    tops = [*up[::2], *reversed(up[1::2])] if is_causal else list(up)
    items = [
        FlashItem(q + top * depth, k, v, top + ROWS if is_causal else tokens, is_causal)
        for top in tops
    ]
    shape = BlockShape(ROWS, WIDTH * 128 // max(depth, 128), depth)
    store_attended(out, [top * depth for top in tops], items, shape)


def roofline(tokens: int, depth: int, *, is_causal: bool) -> PeRoofline:
    """The bounds of the scores which are not masked."""
    scores = tokens * (tokens + 1) // 2 if is_causal else tokens * tokens
    return PeRoofline.of(
        torch.ahbm.get_device_properties(),
        macs=2 * scores * depth,
        hbm_bytes=4 * tokens * depth * 2,
        vectors=dict.fromkeys(("max", "fma", "exp", "cast"), scores),
    )


def run(tokens: int = 1024, depth: int = 128, *, causal: bool = False) -> None:
    """Draw a head in float16, run the kernel, and compare with dense attention in float64."""
    if tokens < ROWS or tokens % ROWS:
        raise SystemExit(f"--tokens {tokens}: a multiple of {ROWS} is needed")
    rank = torch.ahbm.current_device()
    draw = np.random.default_rng(rank).standard_normal
    q, k, v = (draw((tokens, depth), np.float32).astype(np.float16) for _ in range(3))
    out = torch.empty(tokens, depth, dtype=torch.float16, dp=ONE_PE)
    tensors = [torch.from_numpy(each, dp=ONE_PE) for each in (q, k, v)]
    launch = torch.launch("flash", flash_attention, *tensors, out, tokens, depth, causal)

    result, verdict = out.numpy(), "not checked"
    if torch.ahbm.has_data():
        exact = attention(q, k, v, causal=causal)
        # Weights and result are rounded to float16, half a unit in the last place of at most 4.
        np.testing.assert_allclose(result, exact, rtol=2**-9, atol=2**-9)
        verdict = "equal to float64"
    bound, taken_ns = roofline(tokens, depth, is_causal=causal), launch.pe_exec_ps / 1000
    print(
        f"rank {rank}: {'causal ' * causal}flash attention of {q.shape} float16, "
        f"{bound.gemm_ns / taken_ns:.1%} of the GEMM peak, {verdict}, {bound.beside(taken_ns)}"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--tokens", type=int, default=1024, help="queries, and keys [1024]")
    parser.add_argument("--depth", type=int, default=128, help="columns of a head [128]")
    parser.add_argument("--causal", action="store_true", help="mask the keys behind a query")
    run(**vars(parser.parse_args()))
