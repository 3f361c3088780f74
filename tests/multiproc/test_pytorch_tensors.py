"""Tensors, windows, types and memory, as docs/pytorch.md states them, in real processes."""

from pathlib import Path

import pytest

from tests.support.runs import kernbench

pytestmark = [pytest.mark.slow, pytest.mark.multiproc]

TENSORS = """
import numpy as np
from runtime import DPPolicy, torch
dist = torch.distributed

def refused(error, text, call, *arguments, **keywords):
    try:
        call(*arguments, **keywords)
    except error as problem:
        assert text in str(problem), problem
    else:
        raise AssertionError(f"{call} is not refused: {text}")

def placed():
    large, small = torch.zeros(256, 4096), torch.zeros(16, 16)
    pes = {(shard.spec.cube, shard.spec.pe) for shard in large.shards}
    assert len(pes) == len(large.shards) == 128, len(pes)
    assert [(each.spec.cube, each.spec.pe) for each in small.shards] == [(0, 0)]

def typed():
    assert torch.tensor([1, 2]).dtype is torch.long
    assert torch.tensor([True]).dtype is torch.bool
    assert torch.arange(3).dtype is torch.int64
    assert torch.arange(0, 1, 0.5).tolist() == [0.0, 0.5]
    assert torch.from_numpy(np.ones(2)).dtype is torch.double
    x = torch.tensor([1.5, -2.5, 0.0])
    assert (x.int().tolist(), x.bool().tolist()) == ([1, -2, 0], [True, True, False])
    assert x.to("ahbm", torch.float64).sum().item() == -1.0
    assert str(x.device) == f"ahbm:{dist.get_rank()}"
    refused(RuntimeError, "has no gradients", torch.zeros, 2, requires_grad=True)
    refused(RuntimeError, "Expected one of cpu, ahbm", torch.zeros, 2, device="cuda")
    refused(RuntimeError, "cannot be converted to Scalar", x.item)

def viewed():
    x = torch.arange(4096, dtype=torch.float32)
    assert len(x.shards) == 4
    y = x.view(64, 64)
    y.narrow(0, 10, 30).fill_(-1)
    expected = np.arange(4096, dtype=np.float32)
    expected[640:2560] = -1
    assert (x.numpy() == expected).all()
    assert [part.shape for part in x.split(3000)] == [(3000,), (1096,)]
    words = x.view(torch.int32, 4, 3)
    assert (np.asarray(words) == expected[1:4].view(np.int32)).all()
    words.zero_()
    assert x[:5].tolist() == [0, 0, 0, 0, 4]
    refused(RuntimeError, "shape '[3, 5]' is invalid for input of size 4096", x.view, 3, 5)
    columns = torch.zeros(8, 128, dp=DPPolicy(cube="column_wise", num_pes=1))
    refused(RuntimeError, "view size is not compatible", columns.view, -1)
    assert columns.contiguous().view(-1).shape == (1024,)
    # Part of a tensor in a collective.
    part = torch.full((8, 16), dist.get_rank() + 1.0)
    dist.all_reduce(part.narrow(0, 2, 3))
    whole = np.full((8, 16), dist.get_rank() + 1.0)
    whole[2:5] = 3
    assert (part.numpy() == whole).all()

def copied():
    x = torch.randn(64, 100)
    half = x.half()
    assert (half.numpy() == x.numpy().astype(np.float16)).all()
    assert (x.t().numpy() == x.numpy().T).all()
    assert torch.cat([x, x], 1).shape == (64, 200)
    assert torch.stack([x, x]).view(-1).size() == (12800,)
    assert x.clone().zero_().cpu().numpy().sum() == 0

def seeded():
    free = torch.rand(4).tolist()
    torch.manual_seed(5)
    print("numbers", dist.get_rank(), free, torch.rand(4).tolist())

def kept():
    torch.ahbm.empty_cache()
    before = torch.ahbm.memory_allocated()
    with torch.ahbm.profile() as profile:
        for step in range(5):
            fresh = torch.empty(128, 1024)
            fresh.fill_(step)
            assert torch.ahbm.memory_allocated() == before + 128 * 1024 * 4
            del fresh
        torch.ahbm.synchronize()
    maps = [record for record in profile.records if record.name == "MmuMapMsg"]
    assert 0 < len(maps) <= 16, len(maps)
    assert torch.ahbm.memory_allocated() == before < torch.ahbm.memory_reserved()
    torch.ahbm.empty_cache()
    assert torch.ahbm.memory_reserved() == before

def main():
    dist.init_process_group("ahbm")
    for each in (placed, typed, viewed, copied, seeded, kept):
        each()
    print("rank", dist.get_rank(), "is right")

main()
"""


def test_tensors_are_those_of_pytorch(tmp_path: Path) -> None:
    script = tmp_path / "tensors.py"
    script.write_text(TENSORS)
    run = kernbench(tmp_path / "run", "--sips", "2", str(script))
    assert run.code == 0, run.err
    assert [f"rank {rank} is right" in run.out for rank in (0, 1)] == [True, True]
    numbers = [line for line in run.out.splitlines() if line.startswith("numbers")]
    free, seeded = zip(*(line.split(" ", 2)[2].split("] [") for line in numbers), strict=True)
    assert free[0] != free[1]
    assert seeded[0] == seeded[1]
