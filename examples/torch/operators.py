"""The roofline of the operators of PyTorch: their simulated times beside the least times which the
bytes, the multiply-adds or the vector functions take on all PEs of a SIP.

    python launch.py --sips 1 examples/torch/operators.py [NAME ...]
"""

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - PyTorch's convention

from kernbench import PeRoofline
from runtime.device.rank.properties import get_device_properties

ROWS, COLUMNS = 8192, 1024
TYPE = torch.bfloat16
ELEMENTS = ROWS * COLUMNS


@dataclass(frozen=True)
class Case:
    """An operator with its operands, and the work that it cannot do without: multiply-adds,
    elements read and written in HBM, and elements of each function of the vector engine.
    """

    size: str
    run: Callable[..., Any]
    operands: Callable[[], tuple[torch.Tensor, ...]]
    macs: int = 0
    elements: int = 0
    vectors: Mapping[str, int] = field(default_factory=dict)


def _drawn(*shape: int, dtype: torch.dtype = TYPE) -> torch.Tensor:
    # A draw on the device would take the time of the host.
    return torch.randn(shape, generator=torch.Generator().manual_seed(0)).to(dtype).to("ahbm")


def _matrices(count: int) -> Callable[[], tuple[torch.Tensor, ...]]:
    return lambda: tuple(_drawn(ROWS, COLUMNS) for _ in range(count))


def _of_matrix(
    run: Callable[..., Any], count: int, moved: int, *functions: str, operands: Any = None
) -> Case:
    return Case(
        size=f"{ROWS} x {COLUMNS}",
        run=run,
        operands=operands or _matrices(count),
        elements=moved * ELEMENTS,
        vectors={name: functions.count(name) * ELEMENTS for name in functions},
    )


def _product(size: str, run: Callable[..., Any], *shapes: tuple[int, ...], macs: int) -> Case:
    def elements(shape: tuple[int, ...]) -> int:
        return torch.Size(shape).numel()

    result = run(*(torch.empty(shape, device="meta") for shape in shapes))
    return Case(
        size=size,
        run=run,
        operands=lambda: tuple(_drawn(*shape) for shape in shapes),
        macs=macs,
        elements=sum(map(elements, (*shapes, tuple(result.shape)))),
    )


def _attention(*, causal: bool, heads: int = 16, tokens: int = 1024, groups: int = 1) -> Case:
    depth = 128
    scores = heads * (tokens * (tokens + 1) // 2 if causal else tokens * tokens)
    shapes = [(1, heads, tokens, depth), *[(1, heads // groups, tokens, depth)] * 2]
    return Case(
        size=f"{heads} heads{f' ({heads // groups} of keys)' * (groups > 1)}, {tokens}, {depth}",
        run=lambda q, k, v: F.scaled_dot_product_attention(
            q, k, v, is_causal=causal, enable_gqa=groups > 1
        ),
        operands=lambda: tuple(_drawn(*shape) for shape in shapes),
        macs=2 * scores * depth,
        elements=sum(torch.Size(shape).numel() for shape in (*shapes, shapes[0])),
        vectors=dict.fromkeys(("max", "fma", "exp", "cast"), scores),
    )


def _attention_gradient(*, causal: bool, groups: int = 1) -> Case:
    forward = _attention(causal=causal, groups=groups)

    def operands() -> tuple[torch.Tensor, ...]:
        given = [each.requires_grad_() for each in forward.operands()]
        return forward.run(*given), _drawn(*given[0].shape), *given

    scores = forward.vectors["exp"]
    return Case(
        size=forward.size,
        run=lambda out, grad, *given: torch.autograd.grad(out, given, grad, retain_graph=True),
        operands=operands,
        # Scores again, and the gradients of probabilities, q, k and v.
        macs=forward.macs // 2 * 5,
        # The operands of the forward pass, its result and the gradients of all four.
        elements=2 * forward.elements,
        vectors=dict.fromkeys(("fma", "exp", "sub", "mul"), scores) | {"cast": 2 * scores},
    )


def _cross_entropy(*, gradient: bool) -> Case:
    def operands() -> tuple[torch.Tensor, ...]:
        drawn = torch.randint(0, COLUMNS, (ROWS,), generator=torch.Generator().manual_seed(0))
        logits, classes = _drawn(ROWS, COLUMNS), drawn.to("ahbm")
        if not gradient:
            return logits, classes
        logits.requires_grad_()
        return F.cross_entropy(logits, classes), logits

    if gradient:
        return _of_matrix(
            lambda loss, x: torch.autograd.grad(loss, x, retain_graph=True),
            *(1, 2, "cast", "sub", "exp", "mul", "cast"),
            operands=operands,
        )
    functions = ("cast", "max", "sub", "exp", "sum")
    return _of_matrix(F.cross_entropy, 1, 1, *functions, operands=operands)


def _mm(m: int, k: int, n: int) -> Case:
    return _product(f"({m}, {k}) x ({k}, {n})", torch.mm, (m, k), (k, n), macs=m * k * n)


CASES: dict[str, Case] = {
    "add": _of_matrix(torch.add, 2, 3, "add"),
    "mul by a number": _of_matrix(lambda x: x * 2, 1, 2, "mul"),
    "add a row": _of_matrix(
        torch.add, 2, 2, "add", operands=lambda: (_drawn(ROWS, COLUMNS), _drawn(COLUMNS))
    ),
    "gelu": _of_matrix(F.gelu, 1, 2, "erf", "mul"),
    "silu": _of_matrix(F.silu, 1, 2, "silu"),
    "to float32": _of_matrix(lambda x: x.float(), 1, 3, "cast"),
    "copy of a transpose": _of_matrix(lambda x: x.t().contiguous(), 1, 2),
    "cat": _of_matrix(lambda x, y: torch.cat([x, y]), 2, 4),
    "softmax": _of_matrix(lambda x: x.softmax(1), 1, 2, "max", "sub", "exp", "sum", "mul"),
    "log_softmax": _of_matrix(lambda x: x.log_softmax(1), 1, 2, "max", "sub", "exp", "sum", "sub"),
    "layer_norm": _of_matrix(
        lambda x, w: F.layer_norm(x, (COLUMNS,), w[0], w[1]),
        2,
        2,
        "sum",
        "sub",
        "fma",
        "sum",
        "mul",
        "fma",
    ),
    "rms_norm": _of_matrix(
        lambda x, w: F.rms_norm(x, (COLUMNS,), w[0]), 2, 2, "mul", "sum", "mul", "mul"
    ),
    "sum": _of_matrix(lambda x: x.sum(), 1, 1, "sum"),
    "sum of rows": _of_matrix(lambda x: x.sum(1), 1, 1, "sum"),
    "sum of columns": _of_matrix(lambda x: x.sum(0), 1, 1, "sum"),
    "mm": _mm(2048, 2048, 2048),
    "linear, few rows": _product(
        "(32, 4096), (4096, 4096)", F.linear, (32, 4096), (4096, 4096), macs=32 * 4096 * 4096
    ),
    "mm, long sums": _mm(256, 16384, 256),
    "linear": _product(
        "(2048, 2048), (2048, 2048)",
        F.linear,
        (2048, 2048),
        (2048, 2048),
        (2048,),
        macs=2048**3,
    ),
    "bmm": _product(
        "256 of (256, 128) x (128, 256)",
        torch.bmm,
        (256, 256, 128),
        (256, 128, 256),
        macs=256 * 256 * 128 * 256,
    ),
    "attention": _attention(causal=False),
    "attention, causal": _attention(causal=True),
    "attention, groups": _attention(causal=True, groups=4),
    "attention gradient": _attention_gradient(causal=False),
    "attention gradient, causal": _attention_gradient(causal=True),
    "attention gradient, groups": _attention_gradient(causal=True, groups=4),
    "cross_entropy": _cross_entropy(gradient=False),
    "cross_entropy gradient": _cross_entropy(gradient=True),
    "embedding": Case(
        size=f"{ROWS} of {ROWS} x {COLUMNS}",
        run=F.embedding,
        operands=lambda: (
            torch.randint(0, ROWS, (ROWS,), generator=torch.Generator().manual_seed(0)).to("ahbm"),
            _drawn(ROWS, COLUMNS),
        ),
        elements=2 * ELEMENTS,
    ),
}


def bound(case: Case) -> PeRoofline:
    """The least times if all PEs have equal shares of the work."""
    device = get_device_properties()
    share = device.pe_count
    return PeRoofline.of(
        device,
        macs=case.macs // share,
        hbm_bytes=case.elements * TYPE.itemsize // share,
        vectors={name: count // share for name, count in case.vectors.items()},
    )


def measured_ns(case: Case) -> float:
    """The simulated time of a second call, when the tensors are mapped."""
    operands = case.operands()
    for _ in range(2):
        torch.ahbm.synchronize()
        start_ns = torch.ahbm.now_ns()
        result = case.run(*operands)
        torch.ahbm.synchronize()
        taken_ns = torch.ahbm.now_ns() - start_ns
        del result
    return taken_ns


def main(names: list[str]) -> None:
    """Print a row for each operator."""
    print(f"{'operator':27}  {TYPE} size".ljust(69), "time us  bound us  by      share")
    for name in names or CASES:
        case, taken_ns = CASES[name], measured_ns(CASES[name])
        least = bound(case)
        limits = {"GEMM": least.gemm_ns, "HBM": least.hbm_ns, "vector": least.vector_ns}
        by = max(limits, key=lambda each: limits[each])
        print(
            f"{name:27}  {case.size:38} {taken_ns / 1000:9,.2f} {least.bound_ns / 1000:9,.2f}  "
            f"{by:6} {least.bound_ns / taken_ns:6.1%}",
            flush=True,
        )


if __name__ == "__main__":
    main(sys.argv[1:])
