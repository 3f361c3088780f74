"""One matrix product on PE 0 of a SIP of one cube: its op log and the counters of the chip."""

from dataclasses import dataclass

from kernbench import tl, torch
from kernbench.oracle.theory.engines.gemm import GemmShape, streamed_bytes
from kernbench.oracle.theory.topology_file import TopologyFile
from kernbench.simulation import Simulation, simulate
from runtime.core.dtypes import DType, float16
from runtime.core.trace import OpRecord
from runtime.language.value import Pointer, Ref, Value
from runtime.model.placement import ONE_PE

MIB = 1 << 20
STAGINGS = {"ref_ref": (False, False), "load_ref": (True, False), "load_load": (True, True)}
"""Whether a kernel loads the first and the second operand into the TCM; else they are streamed."""
PIPELINE = ("pe_dma", "pe_fetch_store", "pe_gemm", "pe_math")


@dataclass(frozen=True)
class GemmCase:
    """A product, and where its operands and its result are.

    `blocked` matrices lie in memory tile by tile. The result goes to memory or stays in the TCM. Of
    `transposed` operands in TCM, the transposed matrices are loaded, and views multiplied.
    """

    shape: GemmShape
    dtype: DType = float16
    result: DType = float16
    staging: str = "ref_ref"
    blocked: bool = True
    to_memory: bool = True
    transposed: bool = False

    def __str__(self) -> str:
        m, k, n = self.shape
        layout = "blocked" if self.blocked else "row-major"
        target = "memory" if self.to_memory else "TCM"
        views = ", transposed views" if self.transposed else ""
        product = f"({m} x {k}) ({k} x {n}) {self.dtype.name}"
        return f"{product}, {self.staging}, {layout}{views}, to {target}"

    def read_bytes(self, tile: GemmShape) -> int:
        """Bytes read from memory: a staged operand once, a streamed one again in each step."""
        m, k, n = self.shape
        once = (m * k * self.dtype.itemsize, k * n * self.dtype.itemsize)
        streamed = streamed_bytes(self.shape, tile, self.dtype.itemsize)
        chosen = zip(STAGINGS[self.staging], once, streamed, strict=True)
        return sum(one if staged else many for staged, one, many in chosen)

    @property
    def written_bytes(self) -> int:
        """Bytes written to memory."""
        return self.result_bytes if self.to_memory else 0

    @property
    def result_bytes(self) -> int:
        """Bytes of the result."""
        return self.shape.m * self.shape.n * self.result.itemsize

    @property
    def scratch_bytes(self) -> int:
        """Largest need of kernel scratch memory: staged operands, and a result in the TCM."""
        m, k, n = self.shape
        return (m * k + k * n) * self.dtype.itemsize + self.result_bytes


class GemmMeasurement:
    """A product that has been simulated."""

    def __init__(self, world: Simulation) -> None:
        self._counters = world.done.sips[0].counters
        self._records = [record for record in world.records[0] if record.engine in PIPELINE]

    def counter(self, name: str) -> int:
        """A counter of the chip."""
        return self._counters[name]

    @property
    def span_ps(self) -> int:
        """Time from the first start to the last end of DMA and engines, with loads of operands."""
        return _span_ps(self._records)

    @property
    def compute_span_ps(self) -> int:
        """The same without DMA: from the first fetch to the last store."""
        return _span_ps([record for record in self._records if record.engine != "pe_dma"])


def measure(file: TopologyFile, case: GemmCase) -> GemmMeasurement:
    """Simulate a product, without data."""

    def program(_rank: int) -> None:
        m, k, n = case.shape
        a, b, out = (
            torch.empty(*shape, dtype=dtype, dp=ONE_PE)
            for shape, dtype in (((m, k), case.dtype), ((k, n), case.dtype), ((m, n), case.result))
        )
        torch.launch("gemm", _kernel, case, a, b, out)
        torch.ahbm.synchronize()

    needed_mb = max(-(-case.scratch_bytes // MIB), file["pe.tcm.kernel_scratch_mb"])
    file = file.with_values(
        {"sip.cube_mesh": {"w": 1, "h": 1}, "pe.tcm.kernel_scratch_mb": needed_mb}
    )
    return GemmMeasurement(simulate(program, 1, topology=file.text, data=False))


def _kernel(case: GemmCase, a: Pointer, b: Pointer, out: Pointer) -> None:
    m, k, n = case.shape
    stages_a, stages_b = STAGINGS[case.staging]
    left, right = (
        _operand(case, a, (m, k), loads=stages_a),
        _operand(case, b, (k, n), loads=stages_b),
    )
    if case.to_memory:
        tl.wait(tl.composite("gemm", left, right, tl.ref(out, (m, n), blocked=case.blocked)))
    else:
        tl.wait(tl.composite("gemm", left, right, out_dtype=case.result))


def _operand(
    case: GemmCase, pointer: Pointer, shape: tuple[int, int], *, loads: bool
) -> Value | Ref:
    if not loads:
        return tl.ref(pointer, shape, blocked=case.blocked)
    return tl.load(pointer, shape[::-1]).mT if case.transposed else tl.load(pointer, shape)


def _span_ps(records: list[OpRecord]) -> int:
    return max(record.end_ps for record in records) - min(record.start_ps for record in records)
