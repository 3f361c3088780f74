"""The Q, K and V projections of GPT-3, scaled down, on the PEs of one cube."""

from dataclasses import dataclass

from kernbench.benches.flags import check_choice, check_least, checked_count
from kernbench.benches.products import DTYPES, FIGURES, LAYOUTS, Product, drawn, wrong_elements
from runtime import DPPolicy, bench, tl, torch
from runtime.core.bench_registry import BenchOutcome, Column, Table, TableRow
from runtime.core.errors import UsageError
from runtime.language.value import Array

D_MODEL = 12288
"""Of GPT-3 175B: T. Brown et al., "Language models are few-shot learners", 2020, table 2.1."""
LABELS = tuple(
    Column(name) for name in ("seq", "d_model", "cubes", "pes", "dtype", "layout", "projections")
)
IN_TURN, IN_FLIGHT = "in turn", "in flight"
HELP = {
    "scale": f"d_model is {D_MODEL} of GPT-3 divided by this",
    "seq": "tokens, the rows of x",
    "dtype": f"element type: {', '.join(DTYPES)}",
    "layout": "matrices in memory: tiled, each tile of the GEMM engine in one piece, or row_major",
}


@dataclass(frozen=True)
class Work:
    """What a rank computes: the product of every PE, and how many cubes and PEs of each take part."""

    product: Product
    cubes: int
    pes: int

    @property
    def columns(self) -> DPPolicy:
        """A PE holds some columns of a weight and of a result."""
        return DPPolicy(
            cube="column_wise", pe="column_wise", num_cubes=self.cubes, num_pes=self.pes
        )

    @property
    def copies(self) -> DPPolicy:
        """Every PE holds x."""
        return DPPolicy(num_cubes=self.cubes, num_pes=self.pes)


def project(  # noqa: PLR0913, PLR0917 - a parameter is a matrix
    x: tl.Pointer,
    w_q: tl.Pointer,
    w_k: tl.Pointer,
    w_v: tl.Pointer,
    q: tl.Pointer,
    k: tl.Pointer,
    v: tl.Pointer,
    product: Product,
    projections: str,
) -> None:
    """Kernel: the columns of x @ w_q, x @ w_k and x @ w_v of which this PE holds the weights."""
    pe = tl.program_id(1) * tl.num_programs(0) + tl.program_id(0)
    rows, depth, columns = product.m, product.k, product.n
    left = tl.ref(x, (rows, depth), blocked=product.tiled)
    pending: list[tl.PendingResult] = []
    for weight, out in ((w_q, q), (w_k, k), (w_v, v)):
        right = tl.ref(weight + pe * depth * columns, (depth, columns), blocked=product.tiled)
        result = tl.ref(out + pe * rows * columns, (rows, columns), blocked=product.tiled)
        pending.append(tl.composite("gemm", left, right, result))
        if projections == IN_TURN:
            tl.wait(pending.pop())
    for each in pending:
        tl.wait(each)


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
    layout: str = "tiled",
) -> BenchOutcome:
    """Every rank projects its own random tokens with its own weights, and compares with numpy in float64."""
    return projections("qkv_gemm", rank, planned(scale, seq, 1, pes, dtype, layout))


def planned(scale: int, seq: int, cubes: int, pes: int, dtype: str, layout: str) -> Work:
    """The work that the flags ask for; raises `UsageError` for what does not exist or does not divide."""
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
    return Work(
        Product(seq, d_model, d_model // (cubes * pes), DTYPES[dtype], tiled=layout == "tiled"),
        cubes,
        pes,
    )


def projections(label: str, rank: int, work: Work) -> BenchOutcome:
    """Project one after the other, and all in flight; each result is a check."""
    torch.ahbm.set_device(rank)
    product, seq, d_model = work.product, work.product.m, work.product.k
    of_x, of_w, _ = product.layouts()
    x = drawn((seq, d_model), product.dtype, rank, 0)
    weights = [drawn((d_model, d_model), product.dtype, rank, number) for number in (1, 2, 3)]
    tokens = torch.from_numpy(x, dp=work.copies, layout=of_x)
    placed = [torch.from_numpy(weight, dp=work.columns, layout=of_w) for weight in weights]
    ok, rows = 0, list[TableRow]()
    for way in (IN_TURN, IN_FLIGHT):
        time_ps, results = _run(work, tokens, placed, way)
        ok += sum(
            wrong_elements(product, x, *pair) == 0 for pair in zip(weights, results, strict=True)
        )
        layout = "tiled" if product.tiled else "row_major"
        described = (seq, d_model, work.cubes, work.pes, product.dtype.torch_name, layout, way)
        rows.append(product.row(described, time_ps, count=3, pes=work.cubes * work.pes))
    table = Table(LABELS, FIGURES, tuple(rows))
    checks = 2 * len(weights)
    if not torch.ahbm.has_data():
        return BenchOutcome(label, 0, 0, unchecked=checks, table=table)
    return BenchOutcome(label, ok, checks - ok, table=table)


def _run(
    work: Work, tokens: torch.Tensor, weights: list[torch.Tensor], way: str
) -> tuple[int, list[Array]]:
    """The time of the kernel, and Q, K and V."""
    product = work.product
    _, _, layout = product.layouts()
    shape = (product.m, product.k)
    results = [
        torch.zeros(shape, dtype=product.result, dp=work.columns, layout=layout) for _ in weights
    ]
    done = torch.launch("project", project, tokens, *weights, *results, product, way)
    arrays = [result.numpy() for result in results]
    return done.pe_exec_ps, arrays
