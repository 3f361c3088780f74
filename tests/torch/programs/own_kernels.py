"""Kernels of the user as operators of PyTorch; prints a line for each case: name and outcome."""

import os
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - PyTorch's convention
from torch._subclasses import FakeTensorMode
from torch.utils.checkpoint import checkpoint

import kernbench
from kernbench import tl
from kernbench.torch_backend.aten.operators import CALLS

DRAW = torch.Generator().manual_seed(0)
Tensors = tuple[torch.Tensor, ...]


def numbers(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(shape, generator=DRAW).to(dtype)


def norm_formula(x: torch.Tensor, weight: torch.Tensor, eps: float = 1e-6) -> torch.Tensor:
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps) * weight


ROWS_OF_X: dict[str, Any] = {
    "grid": lambda x: (x.numel() // x.shape[-1],),
    "sizes": {"columns": lambda x: x.shape[-1]},
}


@kernbench.kernel("own::rms_norm", outputs="y", reference=norm_formula, **ROWS_OF_X)
def rms_norm(
    x: tl.Pointer, weight: tl.Pointer, y: tl.Pointer, columns: int, eps: float = 1e-6
) -> None:
    row = tl.program_id(0) * columns
    values = tl.load(x + row, columns).to(tl.float32)
    mean = tl.sum(values * values, axis=0, keep_dims=True) * (1 / columns)
    normal = values * tl.rsqrt(mean + eps) * tl.load(weight, columns).to(tl.float32)
    tl.store(y + row, normal.to(y.dtype))


@kernbench.kernel("own::silu", outputs="y", **ROWS_OF_X)
def silu(x: tl.Pointer, y: tl.Pointer, columns: int) -> None:
    row = tl.program_id(0) * columns
    tl.store(y + row, tl.silu(tl.load(x + row, columns)))


@kernbench.kernel("own::silu_gradient", outputs="result", **ROWS_OF_X)
def silu_gradient(x: tl.Pointer, grad: tl.Pointer, result: tl.Pointer, columns: int) -> None:
    row = tl.program_id(0) * columns
    values = tl.load(x + row, columns)
    share = tl.sigmoid(values)
    tl.store(result + row, tl.load(grad + row, columns) * share * (1 + values * (1 - share)))


silu.register_autograd(
    lambda ctx, grad: silu_gradient(*ctx.saved_tensors, grad),
    setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs),
)


@kernbench.kernel("own::extremes", outputs=("least", "greatest"), placement="x", **ROWS_OF_X)
def extremes(x: tl.Pointer, least: tl.Pointer, greatest: tl.Pointer, columns: int) -> None:
    row = tl.program_id(0)
    values = tl.load(x + row * columns, (1, columns))
    tl.store(least + row, tl.min(values, axis=1))
    tl.store(greatest + row, tl.max(values, axis=1))


@extremes.register_fake
def _(x: torch.Tensor) -> Tensors:
    return x.new_empty(x.shape[:-1]), x.new_empty(x.shape[:-1])


@kernbench.kernel("own::greatest", outputs="y", **ROWS_OF_X)
def greatest(x: tl.Pointer, y: tl.Pointer, columns: int) -> None:
    row = tl.program_id(0)
    tl.store(y + row, tl.argmax(tl.load(x + row * columns, (1, columns)), axis=1).to(tl.int64))


@greatest.register_fake
def _(x: torch.Tensor) -> torch.Tensor:
    return x.new_empty(x.shape[:-1], dtype=torch.int64)


@kernbench.kernel("own::add_rows", mutates_args="table", **ROWS_OF_X)
def add_rows(table: tl.Pointer, x: tl.Pointer, columns: int) -> None:
    row = tl.program_id(0) * columns
    tl.store(table + row, tl.load(table + row, columns) + tl.load(x + row, columns))


@kernbench.kernel("own::scaled", outputs="y", sizes={"count": lambda x: x.numel()})
def scaled(
    x: tl.Pointer, bias: tl.Pointer | None, y: tl.Pointer, count: int, factor: float = 2.0
) -> None:
    # Without a grid: a program for each PE of the result.
    program, programs = tl.program_id(0), tl.num_programs(0)
    first, last = (count * each // programs for each in (program, program + 1))
    values = tl.load(x + first, last - first) * factor
    if bias is not None:
        values = values + tl.load(bias + first, last - first)
    tl.store(y + first, values)


@kernbench.kernel(
    "own::transposed",
    outputs="y",
    strided="x",
    sizes={
        "rows": lambda x: x.shape[0],
        "columns": lambda x: x.shape[1],
        "down": lambda x: x.stride(0),
        "across": lambda x: x.stride(1),
    },
    grid=lambda x: (1,),
)
def copied(x: tl.Pointer, y: tl.Pointer, rows: int, columns: int, down: int, across: int) -> None:
    tl.store(y, tl.load(x, (rows, columns), (down, across)))


@kernbench.kernel("own::fails", outputs="y", **ROWS_OF_X)
def fails(x: tl.Pointer, y: tl.Pointer, columns: int) -> None:
    tl.store(y, tl.load(x, columns).to(tl.int32))


def close(actual: torch.Tensor, expected: torch.Tensor, part: float = 2e-6) -> None:
    error = (actual.cpu().double() - expected.double()).abs().max().item()
    assert error <= part * max(1.0, expected.abs().max().item()), f"{error:.1e}"


def of_both(x: torch.Tensor) -> Tensors:
    return x.clone().requires_grad_(), x.to("ahbm").requires_grad_()


def forward() -> None:
    for shape in ((3, 64, 128), (1, 40), (257, 1000)):
        x, weight = numbers(*shape), numbers(shape[-1])
        close(rms_norm(x.to("ahbm"), weight.to("ahbm")), norm_formula(x, weight))
    x, weight = numbers(8, 128, dtype=torch.float16), numbers(128, dtype=torch.float16)
    result = rms_norm(x.to("ahbm"), weight.to("ahbm"), 1e-3)
    assert result.dtype == torch.float16
    close(result, norm_formula(x.float(), weight.float(), 1e-3), 2**-10)


def the_formula_on_a_cpu() -> None:
    x, weight = numbers(8, 128), numbers(128)
    assert rms_norm(x, weight).equal(norm_formula(x, weight))


def gradient_of_the_formula() -> None:
    (x, own_x), (weight, own_weight) = of_both(numbers(32, 128)), of_both(numbers(128))
    expected = torch.autograd.grad(norm_formula(x, weight).pow(3).sum(), [x, weight])
    actual = torch.autograd.grad(rms_norm(own_x, own_weight).pow(3).sum(), [own_x, own_weight])
    for each, other in zip(actual, expected, strict=True):
        close(each, other, 1e-5)


def gradient_of_one_operand() -> None:
    x, (_, weight) = numbers(32, 128).to("ahbm"), of_both(numbers(128))
    rms_norm(x, weight).sum().backward()
    assert x.grad is None
    assert weight.grad is not None


def second_gradient() -> None:
    found = []
    for x, function in zip(of_both(numbers(8, 16)), (norm_formula, rms_norm), strict=True):
        weight = torch.ones(16, device=x.device)
        (first,) = torch.autograd.grad(function(x, weight).pow(3).sum(), [x], create_graph=True)
        found.append(torch.autograd.grad(first.square().sum(), [x])[0])
    close(found[1], found[0].detach(), 1e-5)


def gradient_of_a_kernel() -> None:
    x, own = of_both(numbers(32, 128))
    F.silu(x).square().sum().backward()
    silu(own).square().sum().backward()
    close(own.grad, x.grad)
    assert CALLS["own::silu_gradient"] == 1


def two_results() -> None:
    x = numbers(64, 4, 100)
    least, greatest = extremes(x.to("ahbm"))
    assert least.cpu().equal(x.amin(-1))
    assert greatest.cpu().equal(x.amax(-1))


def a_changed_tensor() -> None:
    table, x = numbers(64, 128), numbers(64, 128)
    own = table.to("ahbm")
    version = own._version
    assert add_rows(own, x.to("ahbm")) is None
    assert own.cpu().equal(table + x)
    assert own._version == version + 1


def options_and_defaults() -> None:
    x, bias = numbers(3000), numbers(3000)
    assert scaled(x.to("ahbm"), None).cpu().equal(x * 2)
    assert scaled(x.to("ahbm"), bias.to("ahbm"), 4.0).cpu().equal(x * 4 + bias)


def other_strides() -> None:
    x, weight = numbers(64, 32), numbers(64)
    own = x.to("ahbm")
    CALLS.clear()
    assert copied(own.t()).cpu().equal(x.t())
    assert not any("copy" in name for name in CALLS if name != "_copy_from"), CALLS
    result = rms_norm(own.t(), weight.to("ahbm"))
    assert result.is_contiguous()
    close(result, norm_formula(x.t(), weight))
    # `empty_like` keeps the order of axes.
    silu.register_fake(torch.empty_like)
    try:
        result = silu(own.t()[:8])
        assert result.stride() == torch.empty_like(x.t()[:8]).stride()
        close(result, F.silu(x.t()[:8]))
    finally:
        silu.register_fake(lambda x: x.new_empty(x.shape))


def no_element() -> None:
    assert rms_norm(numbers(0, 16).to("ahbm"), numbers(16).to("ahbm")).shape == (0, 16)


def compiled() -> None:
    graphs = list[torch.fx.GraphModule]()

    def recorded(graph: torch.fx.GraphModule, given: Any) -> Any:
        from torch._dynamo.backends.debugging import aot_eager

        graphs.append(graph)
        return aot_eager(graph, given)

    def model(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return silu(rms_norm(x * 2, weight)).sum()

    (x, own_x), (weight, own_weight) = of_both(numbers(32, 128)), of_both(numbers(128))
    expected = F.silu(norm_formula(x * 2, weight)).sum()
    expected.backward()
    result = torch.compile(model, backend=recorded, fullgraph=True)(own_x, own_weight)
    result.backward()
    close(result.detach(), expected.detach(), 1e-5)
    close(own_x.grad, x.grad, 1e-5)
    close(own_weight.grad, weight.grad, 1e-5)
    targets = [str(node.target) for graph in graphs for node in graph.graph.nodes]
    assert targets.count("own.rms_norm.default") == targets.count("own.silu.default") == 1, targets


def compiled_with_other_shapes() -> None:
    model = torch.compile(lambda x, w: rms_norm(x, w) + 1, backend="aot_eager", dynamic=True)
    weight = numbers(40)
    for rows in (3, 5, 8):
        x = numbers(rows, 40)
        close(model(x.to("ahbm"), weight.to("ahbm")), norm_formula(x, weight) + 1)


def compiled_change() -> None:
    def model(table: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        add_rows(table, x * 2)
        return table + 1

    table, x = numbers(8, 32), numbers(8, 32)
    own = table.to("ahbm")
    result = torch.compile(model, backend="aot_eager", fullgraph=True)(own, x.to("ahbm"))
    close(own, table + x * 2)
    close(result, table + x * 2 + 1)


class Normed(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(64))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return rms_norm(x, self.weight) * 2


def exported() -> None:
    model, x = Normed().to("ahbm"), numbers(4, 64)
    program = torch.export.export(model, (x.to("ahbm"),))
    assert "own.rms_norm" in str(program.graph)
    close(program.module()(x.to("ahbm")).detach(), norm_formula(x, torch.ones(64)) * 2)


def fake() -> None:
    with FakeTensorMode():
        x = torch.empty(4, 3, 64, device="ahbm")
        assert rms_norm(x, torch.empty(64, device="ahbm")).shape == x.shape
        least, _ = extremes(x)
        assert least.shape == (4, 3)
        assert least.device.type == "ahbm"
    assert not CALLS


def checked_by_pytorch() -> None:
    x, weight = numbers(4, 64), numbers(64)
    torch.library.opcheck(rms_norm, (x.requires_grad_(), weight.requires_grad_()))
    own, own_weight = (each.detach().to("ahbm").requires_grad_() for each in (x, weight))
    # The fourth one takes no device but CPU, CUDA and XPU.
    utils = ("test_schema", "test_faketensor", "test_aot_dispatch_dynamic")
    torch.library.opcheck(rms_norm, (own, own_weight), test_utils=utils)
    torch.library.opcheck(silu, (own,), test_utils=utils)
    torch.library.opcheck(add_rows, (own.detach(), own.detach() * 2), test_utils=utils)


def modes() -> None:
    x, model = numbers(8, 64), Normed().to("ahbm")
    plain, kept = (x.to("ahbm").requires_grad_() for _ in range(2))
    model(plain).square().sum().backward()
    checkpoint(model, kept, use_reentrant=False).square().sum().backward()
    assert kept.grad.cpu().equal(plain.grad.cpu())
    with torch.inference_mode():
        assert model(x.to("ahbm")).cpu().equal(model(plain).detach().cpu())
    each = torch.vmap(lambda row: rms_norm(row, model.weight))(plain[:, None])
    assert each[:, 0].detach().cpu().equal(model(plain).detach().cpu() / 2)


CASES = {
    "forward": forward,
    "the formula on a CPU": the_formula_on_a_cpu,
    "gradient of the formula": gradient_of_the_formula,
    "gradient of one operand": gradient_of_one_operand,
    "second gradient": second_gradient,
    "gradient of a kernel": gradient_of_a_kernel,
    "two results": two_results,
    "a changed tensor": a_changed_tensor,
    "options and defaults": options_and_defaults,
    "other strides": other_strides,
    "no element": no_element,
    "compiled": compiled,
    "compiled with other shapes": compiled_with_other_shapes,
    "compiled change": compiled_change,
    "exported": exported,
    "fake": fake,
    "checked by PyTorch": checked_by_pytorch,
    "modes": modes,
}


if __name__ == "__main__":
    given = os.environ.get("CASES", "")
    for case in given.split(";") if given else CASES:
        CALLS.clear()
        try:
            CASES[case]()
            outcome = "ok"
        except Exception as error:  # noqa: BLE001 - the outcome of the case
            outcome = f"{type(error).__name__}: {' '.join(str(error).split())[:900]}"
        print(f"{case} | {outcome}", flush=True)
