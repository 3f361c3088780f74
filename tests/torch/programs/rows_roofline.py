"""Times of operators on rows beside their bounds, on one SIP without data; prints a name, the time,
the bound and the bytes of each.
"""

import sys
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - PyTorch's convention

from kernbench import PeRoofline
from runtime.device.rank.properties import get_device_properties
from runtime.device.rank.rank_state import running_rank

DEVICE = get_device_properties()


@dataclass(frozen=True)
class Work:
    """A call; bytes that it reads and writes; elements of each function; bytes over one link."""

    run: Callable[[], Any]
    nbytes: int
    vectors: Mapping[str, int] = field(default_factory=dict)
    link_bytes: int = 0


def tensor(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.empty(shape, dtype=dtype, device="ahbm")


def counted(elements: int, functions: str) -> dict[str, int]:
    return {name: count * elements for name, count in Counter(functions.split()).items()}


def on_rows(
    function: Callable[[torch.Tensor], Any],
    shape: tuple[int, int],
    functions: str,
    dtype: torch.dtype = torch.float32,
    matrices: int = 2,
) -> Work:
    x = tensor(*shape, dtype=dtype)
    return Work(lambda: function(x), matrices * x.nbytes, counted(x.numel(), functions))


def norm(name: str, functions: str, dtype: torch.dtype = torch.float32) -> Work:
    columns = 4096
    rows = [tensor(columns, dtype=dtype) for _ in range(2)]
    if name == "layer_norm":
        return on_rows(
            lambda x: F.layer_norm(x, (columns,), *rows), (8192, columns), functions, dtype
        )
    return on_rows(lambda x: F.rms_norm(x, (columns,), rows[0]), (8192, columns), functions, dtype)


def cross_entropy(*, gradient: bool) -> Work:
    rows, columns = 8192, 1024
    logits = tensor(rows, columns, dtype=torch.bfloat16).requires_grad_()
    target = torch.zeros(rows, dtype=torch.int64).to("ahbm")
    if not gradient:
        vectors = counted(logits.numel(), "cast max sub exp sum")
        return Work(lambda: F.cross_entropy(logits.detach(), target), logits.nbytes, vectors)
    loss = F.cross_entropy(logits, target)
    return Work(
        lambda: torch.autograd.grad(loss, logits, retain_graph=True),
        2 * logits.nbytes,
        counted(logits.numel(), "cast sub exp mul cast"),
    )


def adamw(**form: bool) -> Work:
    shape = 2048, 1024
    parameter = torch.nn.Parameter(tensor(*shape))
    parameter.grad = tensor(*shape)
    optimizer = torch.optim.AdamW([parameter], **form)
    count = parameter.numel()
    # Parameter, gradient and both moments are read, all but the gradient are written; of a list
    # operator for each step of the formula, its operands and its result.
    moved = 7 if "fused" in form else 2 + 3 + 2 + 3 + 2 + 2 + 2 + 4
    functions = "mul sub fma mul mul fma sqrt fma mul div sub"
    return Work(optimizer.step, moved * parameter.nbytes, counted(count, functions))


def embedding(*, gradient: bool) -> Work:
    rows, columns = 8192, 1024
    chosen = torch.randint(0, rows, (rows,), generator=torch.Generator().manual_seed(0))
    table, index = tensor(rows, columns, dtype=torch.bfloat16), chosen.to("ahbm")

    def backward() -> Any:
        return torch.ops.aten.embedding_dense_backward(table, index, rows, -1, False)

    pairs = list(enumerate(chosen.tolist()))
    moves = pairs if gradient else [(source, target) for target, source in pairs]
    return Work(
        backward if gradient else lambda: F.embedding(index, table),
        2 * table.nbytes,
        link_bytes=busiest_link(moves, rows) * columns * table.itemsize,
    )


def busiest_link(moves: list[tuple[int, int]], rows: int) -> int:
    """The most (source, target) rows of matrices on all cubes that one link between cubes carries;
    routes follow columns of cubes first.
    """
    width, height = (
        running_rank().topology.sip.cube_mesh.w,
        running_rank().topology.sip.cube_mesh.h,
    )
    carried = Counter[tuple[int, int, int, int]]()
    for source, target in moves:
        x, y = (source * width * height // rows) % width, source * width * height // rows // width
        to_x, to_y = (
            (target * width * height // rows) % width,
            target * width * height // rows // width,
        )
        while (x, y) != (to_x, to_y):
            step = ((to_x > x) - (to_x < x), 0) if x != to_x else (0, (to_y > y) - (to_y < y))
            carried[x, y, *step] += 1
            x, y = x + step[0], y + step[1]
    return max(carried.values())


def rotary() -> Work:
    """The five operators of a rotary embedding as models write it."""
    x, cos, sin = (tensor(8192, 1024) for _ in range(3))

    def run() -> torch.Tensor:
        turned = torch.cat((-x[:, 512:], x[:, :512]), -1)
        return x * cos + turned * sin

    # Half of the elements are negated; a copy, two products and a sum of all.
    return Work(run, (1 + 2 + 3 + 3 + 3) * x.nbytes, counted(x.numel(), "mul mul add"))


HALF = torch.bfloat16
SOFTMAX = "max sub exp sum mul"
LAYER_NORM = "sum sub mul sum mul fma"
RMS_NORM = "mul sum mul mul"
CASES: dict[str, Callable[[], Work]] = {
    "softmax": lambda: on_rows(lambda x: x.softmax(1), (8192, 1024), SOFTMAX),
    "softmax, bfloat16": lambda: on_rows(
        lambda x: x.softmax(1), (8192, 1024), f"cast {SOFTMAX} cast", HALF
    ),
    "layer_norm": lambda: norm("layer_norm", LAYER_NORM),
    "layer_norm, bfloat16": lambda: norm("layer_norm", f"cast {LAYER_NORM} cast", HALF),
    "rms_norm": lambda: norm("rms_norm", RMS_NORM),
    "rms_norm, bfloat16": lambda: norm("rms_norm", f"cast {RMS_NORM} cast", HALF),
    "cross_entropy": lambda: cross_entropy(gradient=False),
    "cross_entropy gradient": lambda: cross_entropy(gradient=True),
    "fused AdamW": lambda: adamw(fused=True),
    "foreach AdamW": lambda: adamw(foreach=True),
    "embedding": lambda: embedding(gradient=False),
    "embedding gradient": lambda: embedding(gradient=True),
    "rotary embedding": rotary,
}


def bound_ns(work: Work) -> float:
    """The least time by the HBM of all PEs, the vector engines, and a link between cubes."""
    share = DEVICE.pe_count
    roofline = PeRoofline.of(
        DEVICE,
        hbm_bytes=work.nbytes // share,
        vectors={name: count // share for name, count in work.vectors.items()},
    )
    return max(roofline.bound_ns, work.link_bytes / running_rank().topology.ucie.bw_gbs)


def main() -> None:
    for name, make in CASES.items():
        work = make()
        for _ in range(2):
            # The first call maps the tensors.
            torch.ahbm.synchronize()
            start_ns = torch.ahbm.now_ns()
            result = work.run()
            torch.ahbm.synchronize()
            taken_ns = torch.ahbm.now_ns() - start_ns
            del result
        sys.stdout.write(f"{name} | {taken_ns} | {bound_ns(work)} | {work.nbytes}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
