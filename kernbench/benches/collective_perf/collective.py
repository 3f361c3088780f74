"""The collectives of nccl-tests: names, sizes of a measurement, and the bandwidths of a row.

These are facts without actions; the command line, the rank program and the report share them.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import gcd

from runtime.ccl.config import POINT_TO_POINT, CallShape, CclConfig
from runtime.core.dtypes import DType, bfloat16, float16, float32, int8, int32

DTYPES: Mapping[str, DType] = {
    "int8": int8,
    "int32": int32,
    "half": float16,
    "float": float32,
    "bfloat16": bfloat16,
}
"""The element types by the names of nccl-tests."""
OPS = ("sum", "prod", "max", "min", "avg")
"""The reductions by the names of nccl-tests."""
ALL = "all"
"""The argument that stands for every type, reduction or root."""


@dataclass(frozen=True)
class Collective:
    """One collective. `call` is its name in `torch.distributed`, "" for the two calls of sendrecv.

    `in_place`: the call has one tensor, not an input and an output. `parts`: the larger buffer of a
    rank consists of a part for every rank, and `count` is the number of elements of one part.
    `reduces`: the elements are combined. `rooted`: one rank is the root. `busbw(n)` is the ratio
    busbw / algbw for n ranks (nccl-tests, doc/PERFORMANCE.md).
    """

    name: str
    call: str
    busbw: Callable[[int], float]
    in_place: bool = False
    parts: bool = False
    reduces: bool = False
    rooted: bool = False


def _ring(ranks: int) -> float:
    # A rank has its own part already: it receives, or sends, those of the n - 1 others (nccl-tests,
    # doc/PERFORMANCE.md).
    return (ranks - 1) / ranks


def _one(ranks: int) -> float:  # noqa: ARG001 - the signature of a factor
    return 1.0


COLLECTIVES: Mapping[str, Collective] = {
    each.name: each
    for each in (
        Collective(
            "all_reduce", "all_reduce", lambda ranks: 2 * _ring(ranks), in_place=True, reduces=True
        ),
        Collective("all_gather", "all_gather_into_tensor", _ring, parts=True),
        Collective("reduce_scatter", "reduce_scatter_tensor", _ring, parts=True, reduces=True),
        Collective("alltoall", "all_to_all_single", _ring, parts=True),
        Collective("broadcast", "broadcast", _one, in_place=True, rooted=True),
        Collective("reduce", "reduce", _one, in_place=True, reduces=True, rooted=True),
        Collective("sendrecv", "", _one),
    )
}


@dataclass(frozen=True)
class PerfParameters:
    """The flags of the rank program, all of them scalars.

    Sizes go from `min_bytes` to `max_bytes`. Each is the previous one times `step_factor`, or plus
    `step_bytes` where the factor is 1. `root` -1 stands for every rank in turn. `algorithm` is a
    name of `ccl.yaml`, `auto`, or "" for the default of that file. At most all of `cubes`, which
    are numbers of cubes such as "12,13", and `pes` PEs of each share a buffer.
    """

    collective: str
    min_bytes: int
    max_bytes: int
    step_bytes: int
    step_factor: int
    iters: int
    warmup: int
    check: int
    op: str
    dtype: str
    root: int
    algorithm: str
    cubes: str
    pes: int

    @property
    def cube_numbers(self) -> tuple[int, ...]:
        """The cubes, the most preferred one first."""
        return tuple(map(int, self.cubes.split(",")))


@dataclass(frozen=True)
class PerfCase:
    """One row of the report. `count` is the number in the column of that name; a collective without
    reduction has `op` "none", one without root has `root` -1.
    """

    collective: Collective
    ranks: int
    count: int
    dtype_name: str
    op: str
    root: int

    @property
    def dtype(self) -> DType:
        """The element type."""
        return DTYPES[self.dtype_name]

    @property
    def size_bytes(self) -> int:
        """Bytes of the larger buffer of a rank."""
        return self.count * self.dtype.itemsize * (self.ranks if self.collective.parts else 1)

    @property
    def input_rows(self) -> int:
        """Rows of the input of a rank; a row has `count` elements."""
        return self.ranks if self.collective.name in ("reduce_scatter", "alltoall") else 1

    @property
    def output_rows(self) -> int:
        """Rows of the output of a rank."""
        return self.ranks if self.collective.name in ("all_gather", "alltoall") else 1

    def algorithm(
        self, ccl: CclConfig, requested: str, cubes: int = 1, *, on_grid: bool = False
    ) -> str:
        """The algorithm that runs, where a name of `ccl.yaml` or `auto` is requested: for a buffer
        on `cubes` cubes, and ranks `on_grid` or not.
        """
        if not self.collective.call:
            return POINT_TO_POINT
        nbytes = self.input_rows * self.count * self.dtype.itemsize
        call = CallShape(nbytes, self.ranks, cubes, on_grid)
        return ccl.choose(requested, self.collective.call, call)

    def spread(self, cubes: Sequence[int], pes: int) -> tuple[tuple[int, ...], int]:
        """The cubes, in rising order, and the number of PEs of each that share a buffer evenly: as
        many PEs as possible, then as many of the first of `cubes` as possible.
        """
        per_cube = gcd(self.count, pes)
        chosen = cubes[: gcd(self.count // per_cube, len(cubes))]
        return tuple(sorted(chosen)), per_cube

    def algbw_gbs(self, time_ps: float) -> float:
        """Bytes of the larger buffer per nanosecond; 0 if the collective took no time."""
        return self.size_bytes * 1000 / time_ps if time_ps else 0.0

    def busbw_gbs(self, time_ps: float) -> float:
        """The algorithm bandwidth times the factor of the collective."""
        return self.algbw_gbs(time_ps) * self.collective.busbw(self.ranks)


def perf_cases(parameters: PerfParameters, ranks: int) -> Iterator[PerfCase]:
    """The rows in the order of nccl-tests: by type, reduction, root, size.

    A size that has no element for every rank has no row.
    """
    collective = COLLECTIVES[parameters.collective]
    dtypes = tuple(DTYPES) if parameters.dtype == ALL else (parameters.dtype,)
    ops = (OPS if parameters.op == ALL else (parameters.op,)) if collective.reduces else ("none",)
    roots = (
        (range(ranks) if parameters.root < 0 else (parameters.root,))
        if collective.rooted
        else (-1,)
    )
    for dtype, op, root in product(dtypes, ops, roots):
        # An average of integers is in general no integer.
        if op == "avg" and not DTYPES[dtype].is_floating_point:
            continue
        for count in _counts(parameters, collective, DTYPES[dtype].itemsize, ranks):
            yield PerfCase(
                collective=collective,
                ranks=ranks,
                count=count,
                dtype_name=dtype,
                op=op,
                root=root,
            )


def _counts(
    parameters: PerfParameters, collective: Collective, itemsize: int, ranks: int
) -> Iterator[int]:
    for size in _sizes(parameters):
        if count := size // _unit_bytes(collective, itemsize, ranks):
            yield count


def rounded_sizes(parameters: PerfParameters, ranks: int) -> Mapping[int, int]:
    """The requested sizes that are no whole elements of every rank, and what they are rounded down
    to; 0 for a size without a row. Of several types, for the largest element.
    """
    dtypes = tuple(DTYPES) if parameters.dtype == ALL else (parameters.dtype,)
    itemsize = max(DTYPES[dtype].itemsize for dtype in dtypes)
    unit = _unit_bytes(COLLECTIVES[parameters.collective], itemsize, ranks)
    return {size: size - size % unit for size in _sizes(parameters) if size % unit}


def _unit_bytes(collective: Collective, itemsize: int, ranks: int) -> int:
    """The size of the larger buffer of a rank with one element, or one of every rank."""
    return itemsize * (ranks if collective.parts else 1)


def _sizes(parameters: PerfParameters) -> Iterator[int]:
    """The requested sizes."""
    size = parameters.min_bytes
    while size <= parameters.max_bytes:
        yield size
        size = (
            size * parameters.step_factor
            if parameters.step_factor > 1
            else size + parameters.step_bytes
        )
