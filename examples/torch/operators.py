"""The roofline of the operators of PyTorch: their simulated times beside the least times which the
bytes, the multiply-adds or the vector functions take on all PEs of a SIP, or the rows that an index
names on the links between cubes.

    python launch.py --sips 1 examples/torch/operators.py [NAME ...]
"""

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - PyTorch's convention

from kernbench import PeRoofline
from runtime.device.rank.properties import get_device_properties
from runtime.device.rank.rank_state import running_rank

ROWS, COLUMNS = 8192, 1024
TYPE = torch.bfloat16
ELEMENTS = ROWS * COLUMNS


@dataclass(frozen=True)
class Case:
    """An operator with its operands, and the work that it cannot do without: multiply-adds,
    elements read and written in HBM, elements of each function of the vector engine, and elements
    that the busiest link between cubes carries. The vector engine computes in float32, so elements
    of 16 bits are converted.
    """

    size: str
    run: Callable[..., Any]
    operands: Callable[[], tuple[torch.Tensor, ...]]
    macs: int = 0
    elements: int = 0
    vectors: Mapping[str, int] = field(default_factory=dict)
    carried: Callable[[], int] = lambda: 0


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


def _rows_of(run: Callable[..., Any], *, gradient: bool) -> Case:
    """Rows of a table, or the sums of their gradients, in another order."""
    chosen = torch.randint(0, ROWS, (ROWS,), generator=torch.Generator().manual_seed(0))

    def carried() -> int:
        moves = enumerate(chosen.tolist())
        if not gradient:
            moves = ((source, target) for target, source in moves)
        return _busiest_link(moves) * COLUMNS

    return Case(
        size=f"{ROWS} of {ROWS} x {COLUMNS}",
        run=run,
        operands=lambda: (chosen.to("ahbm"), _drawn(ROWS, COLUMNS)),
        elements=2 * ELEMENTS,
        carried=carried,
    )


def _busiest_link(moves: Iterable[tuple[int, int]]) -> int:
    """The most rows that a link between cubes carries, for (source, target) rows of matrices on all
    cubes. Routes follow columns of cubes first.
    """
    mesh = running_rank().topology.sip.cube_mesh
    share = ROWS // (mesh.w * mesh.h)
    carried = Counter[tuple[int, int, int, int]]()
    for source, target in moves:
        (y, x), (to_y, to_x) = (divmod(row // share, mesh.w) for row in (source, target))
        while (x, y) != (to_x, to_y):
            across = (to_x > x) - (to_x < x)
            down = 0 if across else (to_y > y) - (to_y < y)
            carried[x, y, across, down] += 1
            x, y = x + across, y + down
    return max(carried.values())


def _adamw(*, fused: bool) -> Case:
    def operands() -> tuple[torch.optim.Optimizer]:
        parameter = torch.nn.Parameter(_drawn(ROWS, COLUMNS))
        parameter.grad = _drawn(ROWS, COLUMNS)
        return (torch.optim.AdamW([parameter], fused=fused, foreach=not fused),)

    functions = ["mul", "sub", "fma", "mul", "mul", "fma", "sqrt", "fma", "mul", "div", "sub"]
    # Parameter, gradient and both moments are read, all but the gradient are written; of the lists,
    # the operands and the result of eight operators.
    read, written = (4, 3) if fused else (12, 8)
    return _of_matrix(
        lambda optimizer: optimizer.step(),
        *(0, read + written, *functions, *["cast"] * (read + written)),
        operands=operands,
    )


def _mm(m: int, k: int, n: int) -> Case:
    return _product(f"({m}, {k}) x ({k}, {n})", torch.mm, (m, k), (k, n), macs=m * k * n)


CASES: dict[str, Case] = {
    "add": _of_matrix(torch.add, 2, 3, "cast", "cast", "add", "cast"),
    "mul by a number": _of_matrix(lambda x: x * 2, 1, 2, "cast", "mul", "cast"),
    "add a row": _of_matrix(
        *(torch.add, 2, 2, "cast", "add", "cast"),
        operands=lambda: (_drawn(ROWS, COLUMNS), _drawn(COLUMNS)),
    ),
    "gelu": _of_matrix(F.gelu, 1, 2, "cast", "erf", "mul", "cast"),
    "silu": _of_matrix(F.silu, 1, 2, "cast", "silu", "cast"),
    "to float32": _of_matrix(lambda x: x.float(), 1, 3, "cast"),
    "copy of a transpose": _of_matrix(lambda x: x.t().contiguous(), 1, 2),
    "cat": _of_matrix(lambda x, y: torch.cat([x, y]), 2, 4),
    "softmax": _of_matrix(
        *(lambda x: x.softmax(1), 1, 2),
        *("cast", "max", "sub", "exp", "sum", "mul", "cast"),
    ),
    "log_softmax": _of_matrix(
        *(lambda x: x.log_softmax(1), 1, 2),
        *("cast", "max", "sub", "exp", "sum", "sub", "cast"),
    ),
    "layer_norm": _of_matrix(
        *(lambda x, w: F.layer_norm(x, (COLUMNS,), w[0], w[1]), 2, 2),
        *("cast", "sum", "sub", "mul", "sum", "mul", "fma", "cast"),
    ),
    "rms_norm": _of_matrix(
        *(lambda x, w: F.rms_norm(x, (COLUMNS,), w[0]), 2, 2),
        *("cast", "mul", "sum", "mul", "mul", "cast"),
    ),
    "sum": _of_matrix(lambda x: x.sum(), 1, 1, "cast", "sum"),
    "sum of rows": _of_matrix(lambda x: x.sum(1), 1, 1, "cast", "sum"),
    "sum of columns": _of_matrix(lambda x: x.sum(0), 1, 1, "cast", "sum"),
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
    "embedding": _rows_of(F.embedding, gradient=False),
    "embedding gradient": _rows_of(
        lambda index, grad: torch.ops.aten.embedding_dense_backward(
            grad, index, num_weights=ROWS, padding_idx=-1, scale_grad_by_freq=False
        ),
        gradient=True,
    ),
    "AdamW, fused": _adamw(fused=True),
    "AdamW, lists": _adamw(fused=False),
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
        links_ns = case.carried() * TYPE.itemsize / running_rank().topology.ucie.bw_gbs
        limits = {"GEMM": least.gemm_ns, "HBM": least.hbm_ns, "vector": least.vector_ns}
        limits["links"] = links_ns
        by = max(limits, key=lambda each: limits[each])
        print(
            f"{name:27}  {case.size:38} {taken_ns / 1000:9,.2f} {limits[by] / 1000:9,.2f}  "
            f"{by:6} {limits[by] / taken_ns:6.1%}",
            flush=True,
        )


if __name__ == "__main__":
    main(sys.argv[1:])
