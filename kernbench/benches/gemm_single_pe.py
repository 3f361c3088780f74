"""The bench `gemm-single-pe`: one matrix product on one PE of every SIP, against its roofline."""

from collections.abc import Mapping

from kernbench import BenchOutcome, Column, Table, bench, tl, torch
from kernbench.benches.flags import check_choice, check_least
from kernbench.benches.products import (
    ACTIVATIONS,
    DTYPES,
    LAYOUTS,
    METRICS,
    BenchProduct,
    random_elements,
    wrong_elements,
)
from runtime.core.dtypes import int32
from runtime.core.errors import UsageError
from runtime.language.value import Array, Ref, Value
from runtime.model.placement import ONE_PE

STAGINGS: Mapping[str, tuple[bool, bool]] = {
    "ref_ref": (False, False),
    "load_ref": (True, False),
    "load_load": (True, True),
}
"""Whether the kernel loads the operands a and b first; the scheduler streams the others."""
LABELS = (
    Column("m"),
    Column("k"),
    Column("n"),
    Column("dtype"),
    Column("staging"),
    Column("layout"),
    Column("epilogue"),
)


def gemm(
    a: tl.Pointer, b: tl.Pointer, out: tl.Pointer, bias: tl.Pointer | None, product: BenchProduct
) -> None:
    """Kernel: out = activation(a @ b + bias), with `a` of shape (m, k) and `b` of shape (k, n)."""
    left = operand(a, (product.m, product.k), product, loaded=product.loads[0])
    right = operand(b, (product.k, product.n), product, loaded=product.loads[1])
    row = None if bias is None else tl.load(bias, product.n)
    result = tl.ref(out, (product.m, product.n), blocked=product.blocked)
    activation = None if product.activation == "none" else product.activation
    tl.composite("gemm", left, right, result, bias=row, activation=activation)


def operand(
    pointer: tl.Pointer, shape: tuple[int, int], product: BenchProduct, *, loaded: bool
) -> Value | Ref:
    """A matrix in TCM if it is loaded, else a reference from which the scheduler streams it."""
    return tl.load(pointer, shape) if loaded else tl.ref(pointer, shape, blocked=product.blocked)


@bench(
    "gemm-single-pe",
    "a matrix product on one PE of every SIP, checked, with the share of the peak that it reaches",
    m="rows of the result",
    n="columns of the result",
    k="length of the sums",
    dtype=f"element type: {', '.join(DTYPES)}",
    staging=(
        "matrices that the kernel loads to TCM first, the others are streamed: "
        "ref_ref none, load_ref the left one, load_load both"
    ),
    layout=(
        "streamed matrices in memory: blocked, every tile of the GEMM engine contiguous, "
        "or row_major"
    ),
    bias="add a row to every row of the result",
    activation=f"applied to every element of the result: {', '.join(ACTIVATIONS)}",
)
def gemm_single_pe(  # noqa: PLR0913 - a parameter is a flag
    rank: int,
    *,
    m: int = 256,
    n: int = 256,
    k: int = 256,
    dtype: str = "float16",
    staging: str = "ref_ref",
    layout: str = "blocked",
    bias: bool = False,
    activation: str = "none",
) -> BenchOutcome:
    """Every rank multiplies its own random matrices on PE 0 of cube 0.

    The result is compared with that of numpy in float64.
    """
    check_least(1, m=m, n=n, k=k)
    for flag, value, known in (
        ("dtype", dtype, DTYPES),
        ("staging", staging, STAGINGS),
        ("layout", layout, LAYOUTS),
    ):
        check_choice(flag, value, known)
    check_choice("activation", activation, ACTIVATIONS)
    product = BenchProduct(
        m=m,
        k=k,
        n=n,
        dtype=DTYPES[dtype],
        loads=STAGINGS[staging],
        blocked=layout == "blocked",
        activation=activation,
    )
    _check(product, biased=bias)
    torch.ahbm.set_device(rank)
    time_ps, wrong = _measure(rank, product, biased=bias)
    epilogue = " + ".join(["bias"] * bias + [activation] * (activation != "none")) or "none"
    row = product.row((m, k, n, dtype, staging, layout, epilogue), time_ps)
    table = Table(LABELS, METRICS, (row,))
    if not torch.ahbm.has_data():
        return BenchOutcome("gemm_single_pe", 0, 0, unchecked=1, table=table)
    return BenchOutcome("gemm_single_pe", int(not wrong), int(wrong > 0), table=table)


def _measure(rank: int, product: BenchProduct, *, biased: bool) -> tuple[int, int]:
    """The time of the kernel, and the number of wrong elements of the result."""
    a = random_elements((product.m, product.k), product.dtype, rank, 0)
    b = random_elements((product.k, product.n), product.dtype, rank, 1)
    bias: Array | None = random_elements((product.n,), product.dtype, rank, 2) if biased else None
    of_a, of_b, of_out = product.layouts()
    left = torch.from_numpy(a, dp=ONE_PE, layout=of_a)
    right = torch.from_numpy(b, dp=ONE_PE, layout=of_b)
    out = torch.zeros(product.m, product.n, dtype=product.result, dp=ONE_PE, layout=of_out)
    row = None if bias is None else torch.from_numpy(bias, dp=ONE_PE)
    launched = torch.launch("gemm", gemm, left, right, out, row, product)
    result = out.numpy()
    wrong = wrong_elements(product, a, b, result, bias) if torch.ahbm.has_data() else 0
    return launched.pe_exec_ps, wrong


def _check(product: BenchProduct, *, biased: bool) -> None:
    """Refuse epilogues that the GEMM engine lacks and operands that do not fit into TCM."""
    if product.result == int32 and product.activation not in ("none", "relu"):
        raise UsageError(
            f"--activation {product.activation}: sums of int8 are integers, which have relu only"
        )
    sizes = (product.m * product.k, product.k * product.n)
    nbytes = sum(
        size * product.dtype.itemsize
        for size, loads in zip(sizes, product.loads, strict=True)
        if loads
    )
    nbytes += biased * product.n * product.dtype.itemsize
    capacity = torch.ahbm.get_device_properties().kernel_scratch_bytes_per_pe
    if nbytes > capacity:
        raise UsageError(
            f"the operands that are loaded have {nbytes:,} bytes; "
            f"the scratch of a kernel has {capacity:,}"
        )
