"""One matrix product on PE 0 of a SIP of one cube: what the op log and the counters of the chip say about it."""

from dataclasses import dataclass

from kernbench.validate.gemm_theory import Sides, streamed_bytes
from kernbench.validate.variant import Variant
from runtime import tl, torch
from runtime.core.dtypes import DType, float16
from runtime.core.trace import OpRecord
from runtime.language.value import Pointer, Ref, Value
from sip_node.local_run import World, simulate

MIB = 1 << 20
STAGINGS = {"ref_ref": (False, False), "load_ref": (True, False), "load_load": (True, True)}
"""Which of the two operands a kernel loads into TCM first; the others are streamed."""
PIPELINE = ("pe_dma", "pe_fetch_store", "pe_gemm", "pe_math")


@dataclass(frozen=True)
class Product:
    """What is multiplied, and where operands and result are. `blocked` matrices lie in memory tile after tile."""

    sides: Sides
    dtype: DType = float16
    result: DType = float16
    staging: str = "ref_ref"
    blocked: bool = True
    to_memory: bool = True

    def __str__(self) -> str:
        m, k, n = self.sides
        layout, target = (
            "tiled" if self.blocked else "row-major",
            "memory" if self.to_memory else "TCM",
        )
        return f"({m} x {k}) ({k} x {n}) {self.dtype.name}, {self.staging}, {layout}, to {target}"

    def read_bytes(self, tile: Sides) -> int:
        """Bytes from memory: staged operands once, streamed ones as the steps need them."""
        m, k, n = self.sides
        once = (m * k * self.dtype.itemsize, k * n * self.dtype.itemsize)
        streamed = streamed_bytes(self.sides, tile, self.dtype.itemsize)
        chosen = zip(STAGINGS[self.staging], once, streamed, strict=True)
        return sum(one if staged else many for staged, one, many in chosen)

    @property
    def written_bytes(self) -> int:
        """Bytes to memory."""
        return self.result_bytes if self.to_memory else 0

    @property
    def result_bytes(self) -> int:
        """Bytes of the result."""
        return self.sides.m * self.sides.n * self.result.itemsize

    @property
    def scratch_bytes(self) -> int:
        """Bytes of kernel scratch that staged operands, and a result in TCM, need at most."""
        m, k, n = self.sides
        return (m * k + k * n) * self.dtype.itemsize + self.result_bytes


class Measured:
    """A product that has been simulated."""

    def __init__(self, world: World) -> None:
        self._counters = world.done.sips[0].counters
        self._records = [record for record in world.records[0] if record.engine in PIPELINE]

    def counter(self, name: str) -> int:
        """A counter of the chip."""
        return self._counters[name]

    def of(self, engine: str, name: str = "") -> list[OpRecord]:
        """The records of an engine, whose names start with `name`."""
        return [
            record
            for record in self._records
            if record.engine == engine and record.name.startswith(name)
        ]

    @property
    def span_ps(self) -> int:
        """From the first start to the last end of all that DMA and engines did for it, loads of staged operands included."""
        return _span_ps(self._records)

    @property
    def compute_span_ps(self) -> int:
        """The same without DMA: from the first fetch to the last store."""
        return _span_ps([record for record in self._records if record.engine != "pe_dma"])


def measure(file: Variant, product: Product) -> Measured:
    """Simulate a product, without data."""

    def program(_rank: int) -> None:
        m, k, n = product.sides
        a, b = torch.empty(m, k, dtype=product.dtype), torch.empty(k, n, dtype=product.dtype)
        torch.launch("gemm", _kernel, product, a, b, torch.empty(m, n, dtype=product.result))
        torch.ahbm.synchronize()

    needed_mb = max(-(-product.scratch_bytes // MIB), file["pe.tcm.kernel_scratch_mb"])
    file = file.with_values(
        {"sip.cube_mesh": {"w": 1, "h": 1}, "pe.tcm.kernel_scratch_mb": needed_mb}
    )
    return Measured(simulate(program, 1, topology=file.text, data=False))


def _kernel(product: Product, a: Pointer, b: Pointer, out: Pointer) -> None:
    m, k, n = product.sides
    stages_a, stages_b = STAGINGS[product.staging]
    left, right = (
        _operand(product, a, (m, k), loads=stages_a),
        _operand(product, b, (k, n), loads=stages_b),
    )
    if product.to_memory:
        tl.wait(tl.composite("gemm", left, right, tl.ref(out, (m, n), blocked=product.blocked)))
    else:
        tl.wait(tl.composite("gemm", left, right, out_dtype=product.result))


def _operand(
    product: Product, pointer: Pointer, shape: tuple[int, int], *, loads: bool
) -> Value | Ref:
    return tl.load(pointer, shape) if loads else tl.ref(pointer, shape, blocked=product.blocked)


def _span_ps(records: list[OpRecord]) -> int:
    return max(record.end_ps for record in records) - min(record.start_ps for record in records)
