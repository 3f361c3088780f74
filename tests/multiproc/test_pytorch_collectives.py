"""Collectives and process groups in real processes: docs/pytorch.md."""

from pathlib import Path

import pytest

from tests.support.runs import kernbench
from tests.support.topologies import variant_text

pytestmark = [pytest.mark.slow, pytest.mark.multiproc]

COLLECTIVES = """
import numpy as np
from runtime import DPPolicy, torch
dist = torch.distributed

def numbers(rank, *shape, dtype=np.float32):
    return np.random.default_rng(rank).integers(-8, 9, shape).astype(dtype)

def uneven(rank, world):
    # Rank a sends (a + 2 b) mod 3 rows to rank b, as a mixture of experts does.
    rows = [[(a + 2 * b) % 3 for b in range(world)] for a in range(world)]
    sent, received = rows[rank], [each[rank] for each in rows]
    every = [np.split(numbers(a, sum(rows[a]), 5), np.cumsum(rows[a])[:-1]) for a in range(world)]
    expected = np.concatenate([every[a][rank] for a in range(world)])
    source, target = torch.from_numpy(np.concatenate(every[rank])), torch.empty(sum(received), 5)
    dist.all_to_all_single(target, source, received, sent)
    assert (target.numpy() == expected).all()
    target.copy_(0)
    dist.all_to_all(list(target.split(received)), list(source.split(sent)))
    assert (target.numpy() == expected).all()

def rooted(rank, world):
    part = torch.from_numpy(numbers(rank, 3, 4))
    gathered = [torch.empty(3, 4) for _ in range(world)] if rank == 2 else None
    dist.gather(part, gathered, dst=2)
    if rank == 2:
        assert all((each.numpy() == numbers(a, 3, 4)).all() for a, each in enumerate(gathered))
    own = torch.empty(3, 4)
    dist.scatter(own, gathered[::-1] if rank == 2 else None, src=2)
    assert (own.numpy() == numbers(world - 1 - rank, 3, 4)).all()
    inputs = [torch.from_numpy(numbers(10 * rank + r, 3, 4)) for r in range(world)]
    dist.reduce_scatter(own, inputs)
    assert (own.numpy() == sum(numbers(10 * a + rank, 3, 4) for a in range(world))).all()

def bits(rank, world):
    for op, combine in (("BAND", np.bitwise_and), ("BOR", np.bitwise_or), ("BXOR", np.bitwise_xor)):
        flags = torch.from_numpy(numbers(rank, 9, dtype=np.int32))
        dist.all_reduce(flags, getattr(dist.ReduceOp, op))
        expected = combine.reduce([numbers(a, 9, dtype=np.int32) for a in range(world)])
        assert (flags.numpy() == expected).all(), op
    # A sum of bools is whether one is true, a product whether all are; integers wrap round.
    mask = torch.tensor([True, rank == 1, False])
    dist.all_reduce(mask)
    assert mask.numpy().tolist() == [True, True, False]
    dist.all_reduce(mask, dist.ReduceOp.PRODUCT)
    assert mask.numpy().tolist() == [True, True, False]
    total, least = torch.tensor([100, 7], dtype=torch.uint8), torch.tensor([2 ** 40 + rank])
    dist.all_reduce(total)
    dist.all_reduce(least, dist.ReduceOp.MIN)
    assert total.numpy().tolist() == [100 * world % 256, 7 * world]
    assert least.numpy().tolist() == [2 ** 40]

def placements(rank, world):
    # By default a tensor of 16 KiB lies on four PEs, one of 4 KiB on one: 16 and 4 here.
    part, whole = torch.from_numpy(numbers(rank, 4096)), torch.empty(world, 64, 64)
    assert len(part.shards) != len(whole.shards), (len(part.shards), len(whole.shards))
    dist.all_gather_into_tensor(whole, part)
    expected = np.array([numbers(a, 4096) for a in range(world)])
    assert (whole.numpy().reshape(world, 4096) == expected).all()
    dist.reduce_scatter_tensor(part, whole)
    assert (part.numpy() == world * numbers(rank, 4096)).all()
    exchanged = torch.empty(world * 4096, dp=DPPolicy(num_cubes=1, num_pes=1))
    dist.all_to_all_single(exchanged, whole)
    assert (exchanged.numpy() == np.tile(expected[rank], world)).all()
    # FSDP gathers into a tensor of which its own part is a window.
    full = torch.zeros(world * 1500)
    mine = full.narrow(0, rank * 1500, 1500)
    mine.copy_(numbers(rank, 1500))
    dist.all_gather_into_tensor(full, mine)
    assert (full.numpy() == np.concatenate([numbers(a, 1500) for a in range(world)])).all()
    # A large tensor moves on many PEs at once, with the algorithm that `auto` chooses.
    large = torch.from_numpy(numbers(rank, 1 << 16))
    assert len(large.shards) == 64
    dist.all_reduce(large)
    assert (large.numpy() == sum(numbers(a, 1 << 16) for a in range(world))).all()

def objects(rank, world):
    everything = [None] * world
    dist.all_gather_object(everything, {"rank": rank, "name": "x" * 100 * rank})
    assert everything == [{"rank": a, "name": "x" * 100 * a} for a in range(world)]
    config = [("adam", {1, 2}), np.arange(3)] if rank == 0 else [None, None]
    dist.broadcast_object_list(config, src=0)
    assert config[0] == ("adam", {1, 2}) and config[1].tolist() == [0, 1, 2]
    gathered = [None] * world if rank == 1 else None
    dist.gather_object(rank ** 70, gathered, dst=1)
    assert rank != 1 or gathered == [a ** 70 for a in range(world)]
    own = [None]
    dist.scatter_object_list(own, [f"rank {a}" for a in range(world)] if rank == 0 else None)
    assert own == [f"rank {rank}"]
    try:
        dist.all_gather_object(everything, lambda: rank)
    except TypeError as error:
        assert "obj is a function, which cannot be sent" in str(error)

def main():
    dist.init_process_group("AHBM")
    assert dist.get_backend() == "ahbm"
    rank, world = dist.get_rank(), dist.get_world_size()
    for check in (uneven, rooted, bits, placements, objects):
        check(rank, world)
        print(f"rank {rank}: {check.__name__} is right")

main()
"""

MISMATCH = """
from runtime import torch
dist = torch.distributed
dist.init_process_group("ahbm")
rank = dist.get_rank()
sent, received = ([1, 3], [1, 2]) if rank == 0 else ([1, 1], [3, 1])
if rank == 1:
    sent = [1, 1]
dist.all_to_all_single(torch.zeros(sum(received)), torch.zeros(sum(sent)), received, sent)
torch.ahbm.synchronize()
"""


def test_every_collective_of_the_page_is_right_on_four_ranks(tmp_path: Path) -> None:
    script = tmp_path / "collectives.py"
    script.write_text(COLLECTIVES)
    run = kernbench(tmp_path / "run", "--sips", "4", str(script))
    assert run.code == 0, run.err
    for rank in range(4):
        for check in ("uneven", "rooted", "bits", "placements", "objects"):
            assert f"rank {rank}: {check} is right" in run.out


def test_split_sizes_that_differ_between_two_ranks_are_an_error_with_both(tmp_path: Path) -> None:
    script = tmp_path / "mismatch.py"
    script.write_text(MISMATCH)
    topology = tmp_path / "small.yaml"
    topology.write_text(variant_text(sip__cube_mesh={"w": 1, "h": 1}))
    run = kernbench(tmp_path / "run", "--topology", str(topology), "--sips", "2", str(script))
    assert run.code != 0
    text = " ".join(run.err.split())
    assert "recv from global_rank_1 expects 8 bytes of f32 in this slot" in text
    assert "4 bytes of f32 came from sip 1" in text
