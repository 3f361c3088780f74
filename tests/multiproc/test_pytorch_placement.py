"""Tiles dealt to PEs and stores of several PEs, in real processes: docs/pytorch.md."""

from pathlib import Path

import pytest

from tests.support.runs import kernbench

pytestmark = [pytest.mark.slow, pytest.mark.multiproc]

TILES = """
import numpy as np
from runtime import DPPolicy, tl, torch
dist = torch.distributed

SIDE, TILES = 32, 20
PES = dict(num_cubes=1, num_pes=8)

def double(x, tiles):
    # As a persistent kernel does: from its own number on, in steps of the number of PEs.
    for tile in range(tl.program_id(0), tiles, tl.num_programs(0)):
        with tl.scratch():
            at = x + tile * SIDE * SIDE
            tl.store(at, tl.load(at, (SIDE, SIDE)) * 2)

def number(x, size):
    tl.store(x, tl.load(x, size) * 0 + tl.program_id(0))

def product(x, y, out):
    if tl.program_id(0) == 0:
        left, right = tl.ref(x, (64, 128), blocked=True), tl.ref(y, (128, 64), blocked=True)
        tl.wait(tl.composite("gemm", left, right, out=tl.ref(out, (64, 64))))

def main():
    dist.init_process_group("ahbm")
    rank = dist.get_rank()
    matrix = np.arange(4 * SIDE * 5 * SIDE, dtype=np.float32).reshape(4 * SIDE, 5 * SIDE)
    for deal in (torch.tiled_row_major, torch.tiled_column_major):
        x = torch.from_numpy(matrix, dp=deal(SIDE, SIDE, **PES))
        shards = [(shard.spec.cube, shard.spec.pe) for shard in x.shards]
        assert shards == [(0, tile % 8) for tile in range(TILES)], shards
        torch.launch("double", double, x, TILES)
        assert (x.numpy() == 2 * matrix).all()
        assert (x[:SIDE, SIDE:2 * SIDE] == 2 * matrix[:SIDE, SIDE:2 * SIDE]).all()
        x[SIDE:2 * SIDE, :SIDE] = 7
        assert (x[SIDE:2 * SIDE, :SIDE] == 7).all()
    # Partial tiles, and fewer tiles than PEs.
    odd = torch.from_numpy(matrix[:45, :70], dp=torch.tiled_row_major(40, 40, **PES))
    assert [shard.spec.nbytes // 4 for shard in odd.shards] == [1600, 1200, 200, 150]
    assert (odd.numpy() == matrix[:45, :70]).all()
    # A dealt matrix is a blocked one over several memories: tl.ref(blocked=True) streams it.
    tile, rng = torch.ahbm.get_device_properties().gemm_tile, np.random.default_rng(rank)
    a, b = (rng.integers(-4, 4, shape).astype(np.float16) for shape in ((64, 128), (128, 64)))
    left = torch.from_numpy(a, dp=torch.tiled_row_major(tile.m, tile.k, **PES))
    right = torch.from_numpy(b, dp=torch.tiled_row_major(tile.k, tile.n, **PES))
    assert len(left.shards) == len(right.shards) == 4
    out = torch.zeros(64, 64, dtype=torch.float16)
    torch.launch("product", product, left, right, out)
    assert (out.numpy() == (a.astype(np.float32) @ b).astype(np.float16)).all()
    # Collectives: one tile of one size on each PE works, several on a PE are refused.
    cubes, pes = torch.ahbm.get_device_properties().cubes, 8
    tiles = torch.tiled_row_major(2, 2)
    one_each = torch.full((2, 2 * cubes * pes), rank + 1.0, dp=tiles)
    dist.all_reduce(one_each)
    assert (one_each.numpy() == 3).all()
    odd = torch.full((5, 40), rank + 1.0, dp=torch.tiled_row_major(4, 4))
    dist.all_reduce(odd)
    assert (odd.numpy() == 3).all()
    many = torch.zeros(64, 64, dp=torch.tiled_row_major(4, 4))
    dist.isend(odd, 1 - rank)
    dist.recv(torch.zeros(5, 40, dp=torch.tiled_row_major(4, 4)), 1 - rank)
    for call in (
        lambda: dist.all_reduce(many),
        lambda: dist.send(many, 1 - rank),
    ):
        try:
            call()
        except ValueError as error:
            print(f"refused: {error}")
    # Replicas: each PE stores to its own, the host reads the first, `copies` shows all.
    replicas = torch.zeros(4, dp=DPPolicy(pe="replicate", **PES))
    torch.launch("number", number, replicas, 4)
    assert replicas.numpy().tolist() == [0.0] * 4
    assert [part.tolist() for _, _, part in replicas.copies()] == [[pe] * 4 for pe in range(8)]
    for arguments in (
        dict(layout=torch.tiled_row_major(2, 2)), dict(dp=torch.blocked_row_major(2, 2))
    ):
        try:
            torch.zeros(4, 4, **arguments)
        except TypeError as error:
            print(error)
    print(f"rank {rank} is right")

main()
"""

CONFLICT = """
from runtime import tl, torch
def fill(x, size):
    tl.store(x, tl.load(x, size) + 1)
torch.launch("fill", fill, torch.zeros(16384), 16384)
torch.ahbm.synchronize()
"""


def test_tiles_are_dealt_read_written_launched_on_and_reduced(tmp_path: Path) -> None:
    script = tmp_path / "tiles.py"
    script.write_text(TILES)
    run = kernbench(tmp_path / "run", "--sips", "2", str(script))
    assert run.code == 0, run.err
    for text in (
        "rank 0 is right",
        "rank 1 is right",
        "has 256 tiles on 128 PEs: collectives take one shard from each PE",
        "has 256 tiles on 128 PEs: send and recv take one shard from each PE",
        "argument 'layout' must be torch.blocked_row_major(...)",
        "which orders the elements of a shard: layout=torch.blocked_row_major(...)",
    ):
        assert text in run.out, text


@pytest.mark.parametrize("data", [True, False])
def test_a_kernel_that_stores_all_of_a_spread_tensor_on_every_pe_is_refused(
    tmp_path: Path, *, data: bool
) -> None:
    script = tmp_path / "conflict.py"
    script.write_text(CONFLICT)
    run = kernbench(tmp_path / "run", *([] if data else ["--no-data"]), "--sips", "1", str(script))
    assert run.code != 0
    text = " ".join(run.err.split())
    for part in (
        "KernelError",
        "kernel 'fill' on sip 0 cube",
        "conflict.py:4: stores to elements 0:",
        "of tensor t1[16384], and so does sip 0 cube",
        "store other elements on each PE (tl.program_id)",
        "DPPolicy(num_cubes=1, num_pes=1)",
    ):
        assert part in text, (part, text)
