"""The bench `qkv-gemm`: the Q, K and V projections of GPT-3, scaled down, on PEs of one cube."""

from dataclasses import dataclass

from kernbench import BenchOutcome, Column, DPPolicy, Table, TableRow, bench, tl, torch
from kernbench.benches.flags import check_choice, check_least, checked_count
from kernbench.benches.products import (
    DTYPES,
    LAYOUTS,
    METRICS,
    BenchProduct,
    random_elements,
    wrong_elements,
)
from runtime.core.errors import UsageError
from runtime.language.value import Array

D_MODEL = 12288
"""The width of GPT-3 175B (T. Brown et al., Language models are few-shot learners, 2020,
table 2.1)."""
LABELS = tuple(
    Column(name) for name in ("seq", "d_model", "cubes", "pes", "dtype", "layout", "projections")
)
IN_TURN, IN_FLIGHT = "in turn", "in flight"
"""Each projection awaited before the next one starts, or all three outstanding together."""
HELP = {
    "scale": f"d_model is {D_MODEL} of GPT-3 divided by this",
    "seq": "tokens, the rows of x",
    "dtype": f"element type: {', '.join(DTYPES)}",
    "layout": "matrices in memory: blocked, each tile of the GEMM engine contiguous, or row_major",
}


@dataclass(frozen=True)
class ProjectionPlan:
    """The product of every PE, and the numbers of cubes and of PEs of each that take part."""

    product: BenchProduct
    cubes: int
    pes: int

    @property
    def columns(self) -> DPPolicy:
        """The placement of weights and results: a block of columns on each PE."""
        return DPPolicy(
            cube="column_wise", pe="column_wise", num_cubes=self.cubes, num_pes=self.pes
        )

    @property
    def copies(self) -> DPPolicy:
        """The placement of x: a copy on every PE."""
        return DPPolicy(num_cubes=self.cubes, num_pes=self.pes)


def project(  # noqa: PLR0913, PLR0917 - a parameter is a matrix
    x: tl.Pointer,
    w_q: tl.Pointer,
    w_k: tl.Pointer,
    w_v: tl.Pointer,
    q: tl.Pointer,
    k: tl.Pointer,
    v: tl.Pointer,
    product: BenchProduct,
    projections: str,
) -> None:
    """Kernel: the columns of x @ w_q, x @ w_k and x @ w_v whose weights are on this PE."""
    pe = tl.program_id(1) * tl.num_programs(0) + tl.program_id(0)
    rows, depth, columns = product.m, product.k, product.n
    left = tl.ref(x, (rows, depth), blocked=product.blocked)
    for weight, out in ((w_q, q), (w_k, k), (w_v, v)):
        right = tl.ref(weight + pe * depth * columns, (depth, columns), blocked=product.blocked)
        result = tl.ref(out + pe * rows * columns, (rows, columns), blocked=product.blocked)
        projection = tl.composite("gemm", left, right, result)
        # Without this wait, the fetches of one product overlap the computation of another.
        if projections == IN_TURN:
            tl.wait(projection)


@bench(
    "qkv-gemm",
    "the Q, K and V projections of GPT-3, scaled down, on PEs of one cube of every SIP, checked",
    pes="PEs of the cube, each with its columns of the weights; 0: all",
    **HELP,
)
def qkv_gemm(
    rank: int,
    *,
    scale: int = 32,
    seq: int = 64,
    pes: int = 1,
    dtype: str = "float16",
    layout: str = "blocked",
) -> BenchOutcome:
    """Every rank projects its own random tokens with its own weights.

    The results are compared with those of numpy in float64.
    """
    plan = projection_plan(scale, seq, 1, pes, dtype, layout)
    return run_projections("qkv_gemm", rank, plan)


def projection_plan(
    scale: int, seq: int, cubes: int, pes: int, dtype: str, layout: str
) -> ProjectionPlan:
    """The plan for these flags; raises `UsageError` for values that do not exist or divide."""
    check_least(1, scale=scale, seq=seq)
    check_choice("dtype", dtype, DTYPES)
    check_choice("layout", layout, LAYOUTS)
    properties = torch.ahbm.get_device_properties()
    cubes = checked_count("cubes", cubes, properties.cubes, "a SIP")
    pes = checked_count("pes", pes, properties.pes_per_cube, "a cube")
    d_model, rest = divmod(D_MODEL, scale)
    if rest:
        raise UsageError(f"--scale {scale}: d_model of {D_MODEL} does not divide by it")
    if d_model % (cubes * pes):
        raise UsageError(
            f"--scale {scale}: {d_model} columns of a weight do not divide by {cubes * pes} PEs"
        )
    columns = d_model // (cubes * pes)
    product = BenchProduct(seq, d_model, columns, DTYPES[dtype], blocked=layout == "blocked")
    return ProjectionPlan(product, cubes, pes)


def run_projections(label: str, rank: int, plan: ProjectionPlan) -> BenchOutcome:
    """Project in turn, then in flight; every result is one check."""
    torch.ahbm.set_device(rank)
    product, seq, d_model = plan.product, plan.product.m, plan.product.k
    of_x, of_w, _ = product.layouts()
    x = random_elements((seq, d_model), product.dtype, rank, 0)
    weights = [
        random_elements((d_model, d_model), product.dtype, rank, number) for number in (1, 2, 3)
    ]
    tokens = torch.from_numpy(x, dp=plan.copies, layout=of_x)
    placed = [torch.from_numpy(weight, dp=plan.columns, layout=of_w) for weight in weights]
    ok, rows = 0, list[TableRow]()
    for order in (IN_TURN, IN_FLIGHT):
        time_ps, results = _run(plan, tokens, placed, order)
        ok += sum(
            wrong_elements(product, x, *pair) == 0 for pair in zip(weights, results, strict=True)
        )
        layout = "blocked" if product.blocked else "row_major"
        labels = (seq, d_model, plan.cubes, plan.pes, product.dtype.torch_name, layout, order)
        rows.append(product.row(labels, time_ps, count=3, pes=plan.cubes * plan.pes))
    table = Table(LABELS, METRICS, tuple(rows))
    checks = 2 * len(weights)
    if not torch.ahbm.has_data():
        return BenchOutcome(label, 0, 0, unchecked=checks, table=table)
    return BenchOutcome(label, ok, checks - ok, table=table)


def _run(
    plan: ProjectionPlan, tokens: torch.Tensor, weights: list[torch.Tensor], order: str
) -> tuple[int, list[Array]]:
    """The time of the kernel, and Q, K and V."""
    product = plan.product
    _, _, layout = product.layouts()
    shape = (product.m, product.k)
    results = [
        torch.zeros(shape, dtype=product.result, dp=plan.columns, layout=layout) for _ in weights
    ]
    launched = torch.launch("project", project, tokens, *weights, *results, product, order)
    arrays = [result.numpy() for result in results]
    return launched.pe_exec_ps, arrays
