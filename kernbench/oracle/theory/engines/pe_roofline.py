"""The roofline of a kernel on one processing element: least times by GEMM engine, HBM slice and
vector engine, which work side by side.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from typing import Protocol


class PeProperties(Protocol):
    """The peak rates of a PE; `torch.ahbm.get_device_properties()` has them."""

    @property
    def hbm_gbs_per_pe(self) -> float:
        """Bandwidth between a PE and its own HBM slice, for both directions together."""
        ...

    @property
    def peak_gemm_tflops_per_pe(self) -> float:
        """Peak rate of the GEMM engine, with two operations per multiply-add."""
        ...

    @property
    def vector_lanes(self) -> int:
        """Elements of a vector."""
        ...

    @property
    def vector_clock_ghz(self) -> float:
        """Clock of the vector engine."""
        ...

    @property
    def vector_cycles(self) -> Mapping[str, int]:
        """Cycles that a vector takes, by function."""
        ...


@dataclass(frozen=True)
class PeRoofline:
    """Least times of a kernel on one PE in nanoseconds, by the engine that would need them."""

    gemm_ns: float = 0.0
    hbm_ns: float = 0.0
    vector_ns: float = 0.0

    @classmethod
    def of(
        cls,
        device: PeProperties,
        *,
        macs: int = 0,
        hbm_bytes: int = 0,
        vectors: Mapping[str, int] | None = None,
    ) -> "PeRoofline":
        """The bounds of `macs` multiply-adds, of `hbm_bytes` read and written in the PE's own HBM
        slice, and of vector functions: `vectors` has the number of elements of each function.

        `ValueError` for a function that the vector engine does not have.
        """
        cycles = 0
        for function, elements in (vectors or {}).items():
            if function not in device.vector_cycles:
                known = ", ".join(sorted(device.vector_cycles))
                raise ValueError(f"the vector engine has no function {function!r}; it has {known}")
            # A partial vector takes the cycles of a full one.
            cycles += ceil(elements / device.vector_lanes) * device.vector_cycles[function]
        return cls(
            # 1 TFLOPS is 1000 operations in a nanosecond, 1 GB/s one byte.
            gemm_ns=2 * macs / (device.peak_gemm_tflops_per_pe * 1000),
            hbm_ns=hbm_bytes / device.hbm_gbs_per_pe,
            vector_ns=cycles / device.vector_clock_ghz,
        )

    @property
    def bound_ns(self) -> float:
        """The largest of the three: no kernel with this work is faster."""
        return max(self.gemm_ns, self.hbm_ns, self.vector_ns)

    @property
    def limit(self) -> str:
        """The engine whose time is the bound."""
        times = {"HBM": self.hbm_ns, "GEMM engine": self.gemm_ns, "vector engine": self.vector_ns}
        return max(times, key=times.__getitem__)

    def beside(self, taken_ns: float) -> str:
        """A measured time beside its bound, for a report."""
        return (
            f"{taken_ns:,.1f} ns, bound {self.bound_ns:,.1f} ns by the {self.limit}: "
            f"{self.bound_ns / taken_ns:.1%}"
        )
