"""Decode attention over a paged KV cache: a user's keys and values lie in pages anywhere in memory.

    kernbench --sips 1 examples/kernels/paged_attention.py

One PE has a KV head for some users, each with a group of query heads. The page table of a user has
the numbers of its pages; blocks of them are loaded with `tl.gather_async` beside the products. The
loop is `flash` in `runtime.device.kernels.attention.flash`.
"""

import argparse

import numpy as np

from kernbench import PeRoofline, tl, torch
from kernbench.benches.attention.grouped_prefill import store_attended
from kernbench.benches.attention.reference import attention
from runtime.device.kernels.attention.flash import BlockShape, FlashItem
from runtime.model.placement import ONE_PE

PAGE_KEYS, WIDTH, GROUP, DEPTH = 16, 128, 8, 128
"""Keys of a page and of a block of scores; query heads of the KV head; columns."""


def paged_decode(
    q: tl.Pointer,
    k: tl.Pointer,
    v: tl.Pointer,
    out: tl.Pointer,
    tables: tuple[tuple[int, ...], ...],
) -> None:
    """Kernel: the attention of one query a head of each user over the pages of its table."""
    starts = [user * GROUP * DEPTH for user in range(len(tables))]
    items = [
        FlashItem(q + start, k, v, len(pages) * PAGE_KEYS, pages=pages, page_keys=PAGE_KEYS)
        for start, pages in zip(starts, tables, strict=True)
    ]
    store_attended(out, starts, items, BlockShape(GROUP, WIDTH, DEPTH))


def run(users: int = 4, pages: int = 128) -> None:
    """Give each user `pages` pages or some less, and compare with dense attention in float64."""
    rank = torch.ahbm.current_device()
    rng = np.random.default_rng(rank)
    counts = [pages - 3 * user for user in range(users)]
    if min(counts) < 1:
        raise SystemExit(f"--pages {pages}: {users} users need at least {3 * users - 2}")
    order = [int(page) for page in rng.permutation(users * pages)]
    tables = tuple(
        tuple(order[user * pages : user * pages + count]) for user, count in enumerate(counts)
    )
    q = rng.standard_normal((users, GROUP, DEPTH), np.float32).astype(np.float16)
    cache = (users * pages, PAGE_KEYS, DEPTH)
    k, v = (rng.standard_normal(cache, np.float32).astype(np.float16) for _ in range(2))
    out = torch.empty(*q.shape, dtype=torch.float16, dp=ONE_PE)
    tensors = [torch.from_numpy(each, dp=ONE_PE) for each in (q, k, v)]
    launch = torch.launch("paged", paged_decode, *tensors, out, tables)

    result, verdict = out.numpy(), "not checked"
    if torch.ahbm.has_data():
        for user, table in enumerate(tables):
            own_k, own_v = (each[list(table)].reshape(-1, DEPTH) for each in (k, v))
            exact = attention(q[user], own_k, own_v)
            np.testing.assert_allclose(result[user], exact, rtol=2**-9, atol=2**-10)
        verdict = "equal to float64"
    keys = sum(counts) * PAGE_KEYS
    bound = PeRoofline.of(
        torch.ahbm.get_device_properties(),
        macs=2 * GROUP * keys * DEPTH,
        hbm_bytes=2 * 2 * DEPTH * (keys + users * GROUP),
        vectors=dict.fromkeys(("max", "fma", "exp", "cast"), GROUP * keys),
    )
    print(
        f"rank {rank}: paged attention of {users} users, {keys:,} keys in pages of {PAGE_KEYS}, "
        f"{verdict}, {bound.beside(launch.pe_exec_ps / 1000)}"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--users", type=int, default=4, help="users [4]")
    parser.add_argument("--pages", type=int, default=128, help="pages of the first user [128]")
    run(**vars(parser.parse_args()))
