"""Kernels with their arguments and expected results, each run on a few PEs in this process."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kernbench import DPPolicy, PeRoofline, torch
from kernbench.simulation import Simulation, simulate
from tests.support.topologies import variant_text

PES = variant_text(sip__cube_mesh={"w": 1, "h": 1}, cube__pe_layout__pe_per_corner=1)
"""Four PEs."""
_TYPES = {
    np.dtype(np.float16): torch.float16,
    np.dtype(np.float32): torch.float32,
    np.dtype(np.int8): torch.int8,
    np.dtype(np.int32): torch.int32,
    np.dtype(np.int64): torch.int64,
}


@dataclass
class Launches:
    """The launches of a case: their time, bytes, and how loads and stores were described."""

    draw: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))
    handles: list[Any] = field(default_factory=list)
    hbm_bytes: int = 0
    macs: int = 0
    pes: int = 1

    def normal(self, *shape: int, dtype: Any = np.float32) -> np.ndarray:
        return self.draw.standard_normal(shape).astype(dtype)

    def put(self, array: np.ndarray) -> Any:
        return torch.from_numpy(np.ascontiguousarray(array))

    def spread(self, array: np.ndarray) -> Any:
        """A tensor with its first axis divided over all PEs, which a launch with it has then."""
        rows = DPPolicy(cube="row_wise", pe="row_wise")
        return torch.from_numpy(np.ascontiguousarray(array), dp=rows)

    def empty(self, *shape: int, dtype: Any = np.float32) -> Any:
        return torch.zeros(*shape, dtype=_TYPES[np.dtype(dtype)])

    def __call__(self, kernel: Any, grid: Any, *arguments: Any, **options: Any) -> Any:
        handle = torch.launch(_name(kernel), kernel, *arguments, grid=grid, **options)
        self.handles.append(handle)
        self.hbm_bytes += sum(getattr(each, "nbytes", 0) for each in arguments)
        (request,) = [each for each in handle.requests if hasattr(each, "kernel")]
        self.pes = max(self.pes, len(request.pes))
        return handle

    def counts(self) -> Any:
        """(boxes, rows of gathers, single elements) of all launches."""
        kernels = [
            each.kernel
            for handle in self.handles
            for each in handle.requests
            if hasattr(each, "kernel")
        ]
        counts = [getattr(each, "kernel", each).counts for each in kernels]
        return tuple(sum(getattr(each, name) for each in counts) for name in _COUNTS)


_COUNTS = ("boxes", "rows", "elements")
Program = Callable[[Launches], Sequence[tuple[Any, np.ndarray, float]]]


@dataclass(frozen=True)
class Case:
    """A kernel: `program` launches it and returns (result, expected, tolerance) for each result."""

    name: str
    source: str
    program: Program


CASES: dict[str, Case] = {}


def case(name: str, source: str) -> Callable[[Program], Program]:
    def added(program: Program) -> Program:
        assert name not in CASES, name
        CASES[name] = Case(name, source, program)
        return program

    return added


@dataclass(frozen=True)
class Outcome:
    """The time of a case, and the distance of its results from those expected, in tolerances."""

    error: float
    time_ns: float
    of_bound: float
    counts: tuple[int, int, int]
    simulation: Simulation


def run(program: Program, *, topology: str = PES, record: bool = False) -> Outcome:
    """Run a case; the error is 1 at the tolerance."""

    def main(rank: int) -> tuple[float, float, float, tuple[int, int, int]]:
        launches = Launches()
        results = [
            (result.numpy(), expected, tolerance)
            for result, expected, tolerance in program(launches)
        ]
        torch.ahbm.synchronize()
        error = max(_distance(*each) for each in results)
        time_ns = sum(each.pe_exec_ps for each in launches.handles) / 1000
        bound = PeRoofline.of(
            torch.ahbm.get_device_properties(),
            macs=-(-launches.macs // launches.pes),
            hbm_bytes=-(-launches.hbm_bytes // launches.pes),
        )
        return error, time_ns, bound.bound_ns / time_ns, launches.counts()

    simulation = simulate(main, 1, topology=topology, record=record)
    error, time_ns, of_bound, counts = simulation.returned[0]
    return Outcome(error, time_ns, of_bound, counts, simulation)


def _distance(result: np.ndarray, expected: np.ndarray, tolerance: float) -> float:
    assert result.shape == expected.shape, (result.shape, expected.shape)
    exact = np.asarray(expected, np.float64)
    difference = np.abs(result.astype(np.float64) - exact)
    if not difference.size:
        return 0.0
    scale = tolerance * (1 + np.abs(exact)) if tolerance else np.full(exact.shape, 1e-300)
    worst = np.max(np.nan_to_num(difference, nan=np.inf) / scale)
    return float(worst)


def _name(kernel: Any) -> str:
    while not hasattr(kernel, "__name__") or hasattr(kernel, "fn"):
        kernel = kernel.fn
    return str(kernel.__name__)


def row_softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)
