"""Operators and comparisons in real processes: docs/pytorch.md and docs/kernels.md."""

from pathlib import Path

import pytest

from tests.support.runs import kernbench

pytestmark = [pytest.mark.slow, pytest.mark.multiproc]

OPERATORS = """
import numpy as np
from runtime import DPPolicy, torch

def refused(function):
    try:
        function()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    raise AssertionError("nothing was refused")

def main():
    torch.distributed.init_process_group("ahbm")
    rank = torch.distributed.get_rank()
    a, b = (np.random.default_rng(s).standard_normal((16, 512)).astype(np.float32) for s in (1, 2))
    x, y = torch.from_numpy(a), torch.from_numpy(b)
    # 4 KiB on each of 8 PEs; a large tensor is on all 128 PEs, and so is what is made of it.
    assert len(x.shards) == 8
    if rank == 0:
        large = torch.ones(256, 512) + 1
        assert len(large.shards) == 128 and large.sum().numpy() == 2 * 256 * 512
    for result, exact in (
        (x + y, a + b), (x - 1, a - np.float32(1)), (2 / y, 2 / b), (-x, -a), (x * y, a * b),
        (x + torch.from_numpy(b[0].copy()), a + b[0]),
        (x * torch.from_numpy(b[:, :1].copy()), a * b[:, :1]),
        (x == y, a == b), (x != x, a != a), (x < 0, a < 0), (y >= x, b >= a),
        (torch.maximum(x, y), np.maximum(a, b)), (x ** 2, a * a), (x.relu(), np.maximum(a, 0)),
        (x * y[0, 0], a * b[0, 0]),
        (torch.add(x, y, alpha=2), (a + 2.0 * b.astype(np.float64)).astype(np.float32)),
    ):
        # Placed like the larger operand.
        assert len(result.shards) == 8
        assert (result.numpy() == exact).all()
    # Comparisons are elementwise, bool tensors; a tensor is not silently false or true.
    assert (x == x).dtype == torch.bool and bool((x == x).all()) and not bool((x == y).any())
    assert (x == "a") is False and x in [x] and len({x: 1, y: 2}) == 2
    assert bool(torch.tensor([1]) == 1) and not bool(torch.zeros(()))
    assert torch.equal(x, x) and not torch.equal(x, y) and torch.allclose(x, x + 1e-9)
    low, high = x < 1, x > -1
    for mask, exact in ((low & high, abs(a) < 1), (low ^ high, abs(a) >= 1), (~low, a >= 1),
                        (low | high, a == a), (~low | ~high, abs(a) >= 1)):
        assert mask.dtype == torch.bool and (mask.numpy() == exact).all()
    bits = torch.arange(16)
    assert ((bits & 5) | 8).tolist() == [n & 5 | 8 for n in range(16)]
    assert (~bits ^ bits).tolist() == [-1] * 16
    # In place, on the same memory.
    before = x.address
    x += y
    x.mul_(0.5).sub_(1)
    assert x.address == before and np.allclose(x.numpy(), (a + b) / 2 - 1, atol=1e-6)
    # Types are promoted as in PyTorch.
    half, whole, flag = (torch.ones(4, dtype=t) for t in (torch.float16, torch.int32, torch.bool))
    types = [
        half + y[0, :4].shape[0], half + torch.ones(4), whole + 1.5, whole / 2, whole + True,
        whole + half, flag + 1, flag + flag, half * 0.1, whole.sum(), half.sum(), half.mean(),
        torch.exp(whole), torch.ones(()) + half,
    ]
    print("types", *(str(each.dtype)[6:] for each in types))
    assert (half * 0.1).numpy()[0] == np.float16(np.float32(0.1))
    # Reductions in two steps.
    assert np.allclose(float(y.sum().numpy()), b.sum(dtype=np.float64), rtol=1e-5)
    assert y.max().numpy() == b.max() and y.min().numpy() == b.min()
    assert np.allclose(y.sum(0).numpy(), b.sum(0), rtol=1e-4, atol=1e-4)
    assert (y.amax(1, keepdim=True).numpy() == b.max(1, keepdims=True)).all()
    assert np.allclose(y.softmax(-1).sum(-1).numpy(), 1, atol=1e-5)
    for text in map(refused, (
        lambda: bool(x), lambda: x + torch.ones(3), lambda: whole.add_(1.5), lambda: x + "a",
        lambda: x < None, lambda: x + a, lambda: a == x, lambda: torch.ones(2).add_(y),
        lambda: torch.add("a", x), lambda: flag - flag, lambda: -flag, lambda: whole.mean(),
        lambda: y.max(0), lambda: y.sum(7), lambda: x & 1, lambda: half ** 3,
        lambda: y.view(-1).narrow(0, 1, 9).add_(y.view(-1).narrow(0, 0, 9)),
        lambda: torch.ones(8, 128, dp=DPPolicy(cube="column_wise")) + torch.ones(8, 128, dp=
            DPPolicy(pe="column_wise")),
    )):
        print(text)
    print(f"rank {rank} is right")

main()
"""

TEXTS = (
    "RuntimeError: Boolean value of Tensor with more than one value is ambiguous",
    "The size of tensor a (512) must match the size of tensor b (3) at non-singleton dimension 1",
    "RuntimeError: result type Float can't be cast to the desired output type Int",
    "TypeError: unsupported operand type(s) for +: 'Tensor' and 'str'",
    "TypeError: '<' not supported between instances of 'Tensor' and 'NoneType'",
    "TypeError: add(): an operand is a numpy array of shape (16, 512); make a tensor of it with ",
    "TypeError: eq(): an operand is a numpy array of shape (16, 512)",
    "RuntimeError: The size of tensor a (2) must match the size of tensor b (512) at ",
    "TypeError: add(): argument 'input' (position 1) must be Tensor, not str",
    "NotImplementedError: Subtraction, the `-` operator, with two bool tensors is not supported.",
    "NotImplementedError: Negation, the `-` operator, on a bool tensor is not supported.",
    "NotImplementedError: mean(): could not infer output dtype. Input dtype must be either a ",
    "NotImplementedError: max() along an axis: the engines find no indices; the values are ",
    "IndexError: Dimension out of range (expected to be in range of [-2, 1], but got 7)",
    "NotImplementedError: pow(): the vector engine has the exponents 0.5, 1 and 2, not 3",
    "RuntimeError: unsupported operation: some elements of the input tensor and the written-to ",
    "is split by DPPolicy(cube='replicate', pe='column_wise'",
    "types float16 float32 float32 float32 int32 float16 int64 bool float16 int64 float16 float16",
    "NotImplementedError: \"bitwise_and\" not implemented for 'Float'",
    "rank 0 is right",
    "rank 1 is right",
)

NO_DATA = """
from runtime import torch
x = torch.ones(64, 512)
y = (x + 1) * x
assert (y == x).dtype == torch.bool and x.sum().shape == () and y.shape == (64, 512)
for function in (lambda: bool(x.sum() > 3), lambda: torch.equal(x, x)):
    try:
        function()
    except RuntimeError as error:
        print(error)
"""

BRANCH = """
from runtime import tl, torch
def clip(x, n):
    v = tl.load(x, n)
    if v == 1:
        tl.store(x, v * 2)
torch.launch("clip", clip, torch.ones(4), 4)
torch.ahbm.synchronize()
"""


def run_of(directory: Path, text: str, *words: str):
    script = directory / "script.py"
    script.write_text(text)
    return kernbench(directory / "run", *words, str(script))


def test_operators_comparisons_and_reductions_are_pytorchs(tmp_path: Path) -> None:
    run = run_of(tmp_path, OPERATORS, "--sips", "2", "--verify-data")
    assert run.code == 0, run.err
    for text in TEXTS:
        assert text in run.out, (text, run.out)


def test_a_run_without_data_computes_shapes_types_and_times_but_no_truth(tmp_path: Path) -> None:
    run = run_of(tmp_path, NO_DATA, "--sips", "1", "--no-data")
    assert run.code == 0, run.err
    assert "is not known: this run simulates no data" in run.out
    assert "equal() is not known: this run simulates no data" in run.out


def test_a_branch_on_data_in_a_kernel_names_kernel_pe_and_line(tmp_path: Path) -> None:
    run = run_of(tmp_path, BRANCH, "--sips", "1")
    assert run.code != 0
    text = " ".join(run.err.split())
    assert "kernel 'clip' on sip 0 cube 0 pe 0 at " in text
    assert "script.py:5: the truth value (if, while, assert, and, or, not, in, a < b < c)" in text
    assert "is not defined for a value in TCM: kernels cannot branch on data; choose" in text
