"""Products whose periods are computed ahead are those whose steps are all simulated, to the bit."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.core.compiled.choice import IS_COMPILED
from runtime.core.coordinates import PeCoordinates
from runtime.core.dtypes import DType, float16, float32, int8
from runtime.core.run_tables import LINKS, OPS
from runtime.core.simtime import NEVER_PS
from runtime.core.trace import Operand, OpRecord
from runtime.language.gemm import accumulator_type, checked_gemm
from runtime.language.value import Pointer, Ref, row_major
from runtime.model.topology import parse_topology
from runtime.wire.codec import decode_records
from sip_node.chip import fast_forward
from sip_node.chip.chip import Chip, chip_spec
from sip_node.chip.fast_forward import FastForward
from sip_node.chip.records.op_log import OpLog
from sip_node.pdes.engine import Engine
from tests.support.recorded import Recorded
from tests.support.topologies import variant_text

pytestmark = pytest.mark.skipif(not IS_COMPILED, reason="the reference simulates every step")
TILE = {"m": 4, "k": 16, "n": 8}
BEGIN_PS = 2_000_000
RUN_EVENTS = 137
A, B, OUT, OTHER = (index << 20 for index in range(4))
"""Offsets in the slice of PE 0."""


class Shape(NamedTuple):
    m: int
    k: int
    n: int


class Machine(NamedTuple):
    shape: Shape
    dtype: DType
    blocked: bool
    tile_buffers: int
    channels: int
    outstanding: int
    penalty_ns: float
    data: bool
    network: str = "unlimited"
    memory: str = "channels"


class Disturbance(NamedTuple):
    kind: str
    time_ps: int


@dataclass(frozen=True)
class Outcome:
    """All that a run leaves behind."""

    records: list[OpRecord]
    digest: str
    counters: dict[str, int]
    servers: list[tuple[int, int, int, int]]
    events: int
    ids: int
    now_ps: int
    ops: list[dict[str, Any]]
    loads: list[dict[str, Any]]


class Run:
    """A chip with two PEs; the first one carries out a product."""

    def __init__(self, machine: Machine, *, forward: bool) -> None:
        text = variant_text(
            sip__cube_mesh={"w": 1, "h": 1},
            cube__pe_layout__pe_per_corner=1,
            cube__pe_layout__corners=["NW", "NE"],
            cube__hbm_ctrl__switch_penalty_ns=machine.penalty_ns,
            hbm__burst_bytes=64,
            hbm__num_pcs=2,
            packet_bytes=256,
            noc__flow_control=machine.network,
            hbm__model=machine.memory,
            pe__tile=TILE,
            pe__dma__channels=machine.channels,
            pe__dma__outstanding=machine.outstanding,
            pe__scheduler__tile_buffers=machine.tile_buffers,
        )
        topology = parse_topology(text, "topology.yaml", 1)
        spec = chip_spec(topology, data=machine.data)
        self.machine, self.addresses = machine, spec.addresses
        self.engine, self.records = Engine(), list[OpRecord]()
        self.recorded = Recorded()
        self.log = OpLog(self._keep, recorder=self.recorded.recorder)
        self.forward = FastForward(self.engine) if forward else None
        self.chip = Chip(spec, 0, self.engine, self.log, self.forward)
        self.pes = [self.chip.pe(PeCoordinates(0, 0, pe)) for pe in (0, 1)]
        self.fill()
        self.engine.at(BEGIN_PS, self.multiply, 0, OUT)

    def _keep(self, records: bytes) -> None:
        self.records.extend(decode_records(records, "the log"))

    def fill(self) -> None:
        """Write the operands, with elements so small that nothing overflows."""
        (m, k, n), dtype = self.machine.shape, self.machine.dtype
        rng, near = np.random.default_rng(7), self.addresses.pe_tcm_addr(0, 0, 0, 0)
        for offset, count in ((A, m * k), (B, k * n)):
            elements = rng.integers(-3, 4, count).astype(dtype.numpy)
            self.pes[0].dma.write(
                Operand(near, (count,), dtype.name),
                Operand(self.address(offset), (count,), dtype.name),
                elements.tobytes() if self.machine.data else b"",
            )

    def address(self, offset: int) -> int:
        return self.addresses.pe_hbm_addr(0, 0, 0, offset)

    def multiply(self, pe: int, out: int) -> None:
        (m, k, n), dtype = self.machine.shape, self.machine.dtype
        result = accumulator_type(dtype) if dtype is int8 else dtype

        def ref(offset: int, rows: int, columns: int, dtype: DType) -> Ref:
            shape = (rows, columns)
            pointer = Pointer(self.address(offset), dtype)
            return Ref(pointer, shape, row_major(shape), self.machine.blocked)

        gemm = checked_gemm(ref(A, m, k, dtype), ref(B, k, n, dtype), ref(out, m, n, result))
        # As if a step of a kernel of its own issued it.
        self.log.step += 1
        self.pes[pe].scheduler.submit(gemm, None, physical)

    def disturb(self, kind: str) -> None:
        dma, near = self.pes[1].dma, self.addresses.pe_tcm_addr(0, 0, 1, 0)
        match kind:
            case "load":
                dma.read(Operand(self.address(B), (3000,), "i8"), Operand(near, (3000,), "i8"))
            case "own load":
                own = Operand(self.addresses.pe_tcm_addr(0, 0, 0, 0), (700,), "i8")
                self.pes[0].dma.read(Operand(self.address(A), (700,), "i8"), own)
            case "overwrite":
                block, ones = Operand(self.address(A), (512,), "i8"), bytes([0, 60]) * 256
                dma.write(Operand(near, (512,), "i8"), block, ones if self.machine.data else b"")
            case "elsewhere":
                far = self.addresses.pe_hbm_addr(0, 0, 1, 0)
                dma.read(Operand(far, (900,), "i8"), Operand(near, (900,), "i8"))
            case "second":
                self.multiply(0, OTHER)
            case _:
                self.multiply(1, OTHER)

    def run(self, disturbances: list[Disturbance], bounds: list[int]) -> Outcome:
        for kind, time_ps in disturbances:
            self.engine.at(time_ps, self.disturb, kind)
        for bound_ps in (*sorted(bounds), NEVER_PS):
            # As the loop of an LP does: several runs up to one bound.
            while self.engine.run_before(bound_ps, RUN_EVENTS):
                pass
        self.log.flush()
        assert not self.chip.broken_law()
        assert self.chip.loads is not None
        self.chip.loads.report()
        servers = (*self.chip.fabric.busiest(), *(pe.tcm.server for pe in self.pes))
        # All events have run: of the next one, SimPy's queue has the number.
        self.engine.timeout(0)
        return Outcome(
            records=self.records,
            digest=self.log.digest(self.chip.memories),
            counters=self.chip.counters(),
            servers=[(s.free_ps, s.busy_ps, s.queued_ps, s.nbytes) for s in servers],
            events=self.engine.events,
            ids=self.engine._queue[0][2],
            now_ps=self.engine.now_ps,
            ops=self.recorded.rows(OPS),
            loads=self.recorded.rows(LINKS),
        )


def physical(pointer: Pointer, shape: tuple[int, ...], strides: tuple[int, ...]) -> list[Operand]:
    packed = strides == row_major(shape)
    return [Operand(pointer.address, shape, pointer.dtype.name, () if packed else strides)]


def run(
    machine: Machine,
    disturbances: list[Disturbance],
    bounds: list[int],
    *,
    forward: bool,
) -> tuple[Outcome, int]:
    """The outcome, and the number of steps that were skipped."""
    made = Run(machine, forward=forward)
    outcome = made.run(disturbances, bounds)
    return outcome, made.forward.skipped_steps if made.forward else 0


machines = st.builds(
    Machine,
    shape=st.builds(Shape, m=st.integers(8, 40), k=st.integers(16, 70), n=st.integers(24, 80)),
    dtype=st.sampled_from([float16, float32, int8]),
    blocked=st.booleans(),
    tile_buffers=st.integers(2, 6),
    channels=st.integers(1, 8),
    outstanding=st.integers(1, 16),
    penalty_ns=st.sampled_from([0.0, 3.0]),
    data=st.booleans(),
    network=st.just("unlimited"),
    memory=st.just("channels"),
)
times = st.integers(BEGIN_PS, BEGIN_PS + 6_000_000)
KINDS = ["load", "own load", "overwrite", "elsewhere", "second", "other PE"]
disturbances = st.builds(Disturbance, kind=st.sampled_from(KINDS), time_ps=times)
PLAIN = Machine(
    shape=Shape(40, 32, 80),
    dtype=float16,
    blocked=True,
    tile_buffers=4,
    channels=4,
    outstanding=8,
    penalty_ns=0.0,
    data=True,
)


@settings(max_examples=20, deadline=None)
@given(machines, st.lists(disturbances, max_size=3), st.lists(times, max_size=3))
def test_a_run_is_the_same_with_and_without_it(
    machine: Machine, disturbed: list[Disturbance], bounds: list[int]
) -> None:
    stepwise, none = run(machine, disturbed, bounds, forward=False)
    ahead, _ = run(machine, disturbed, bounds, forward=True)
    assert none == 0
    assert ahead == stepwise


@pytest.mark.parametrize("data", [True, False])
@pytest.mark.parametrize("dtype", [float16, int8])
def test_most_steps_of_a_product_alone_are_skipped(dtype: DType, data: bool) -> None:
    machine = PLAIN._replace(dtype=dtype, data=data)
    stepwise, _ = run(machine, [], [], forward=False)
    ahead, skipped = run(machine, [], [], forward=True)
    assert ahead == stepwise
    assert skipped > 0.5 * stepwise.counters["gemm_tiles"]


@pytest.mark.parametrize("kind", KINDS)
def test_it_goes_on_after_something_else_has_used_a_resource(kind: str) -> None:
    disturbed = [Disturbance(kind, BEGIN_PS + 3_000_000)]
    stepwise, _ = run(PLAIN, disturbed, [], forward=False)
    ahead, skipped = run(PLAIN, disturbed, [], forward=True)
    assert ahead == stepwise
    assert skipped


def test_a_wrong_skip_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    class TooFar(fast_forward.ProductWalk):
        """Moves times and counts by a period too many."""

        def shift(self, first: object, second: object, periods: int) -> None:
            super().shift(first, second, periods + 1)

    monkeypatch.setattr(fast_forward, "ProductWalk", TooFar)
    stepwise, _ = run(PLAIN, [], [], forward=False)
    ahead, _ = run(PLAIN, [], [], forward=True)
    assert ahead != stepwise


@pytest.mark.parametrize("change", [{"network": "credits"}, {"memory": "banks"}])
def test_other_hardware_simulates_every_step(change: dict[str, str]) -> None:
    made = Run(PLAIN._replace(**change), forward=True)
    made.engine.run_before(NEVER_PS)
    assert made.chip.counters()["gemm_tiles"] == 200
    assert made.forward is not None
    assert made.forward.skipped_steps == 0
