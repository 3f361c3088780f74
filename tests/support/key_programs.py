"""Programs on which every key of `topology.yaml` acts, and the machines on which it does."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from runtime import DPPolicy, tl, torch
from runtime.core.requests import MemoryReadMsg, MemoryWriteMsg
from runtime.device.rank.rank_state import running_rank

SMALL: dict[str, Any] = {
    "system.sips.count": 2,
    "sip.cube_mesh.w": 2,
    "sip.cube_mesh.h": 1,
    "cube.pe_layout.pe_per_corner": 1,
    "cube.pe_layout.corners": ["NW", "SE"],
}
"""Two SIPs of two cubes, with two PEs each."""
COLUMNS, ROWS = 300, 6
ROW_WISE = DPPolicy(cube="row_wise", pe="row_wise")
UNARY = (
    *("abs", "relu", "exp", "log", "sqrt", "sin", "cos", "tanh", "sigmoid", "silu", "gelu"),
    *("exp2", "log2", "rsqrt", "erf", "floor", "ceil", "round"),
    *("sum", "max", "min", "argmax", "argmin", "cumsum", "trans"),
)


def pe_number() -> int:
    """The number of this PE in its SIP."""
    return tl.program_id(1) * tl.num_programs(0) + tl.program_id(0)


def moves(x: tl.Pointer, y: tl.Pointer, pes: int) -> None:
    """Loads of the own block and of the next PE's, a gather, chains and stores in flight."""
    own, size = pe_number(), ROWS * COLUMNS
    near, far = x + own * size, x + (own + 1) % pes * size
    blocks = [tl.load_async(start, (3, COLUMNS)) for start in (near, far, far + 3 * COLUMNS)]
    rows = tl.gather(x, [own, 3, 1], COLUMNS)
    total = rows
    for block in blocks:
        total = tl.fused(
            lambda a, b: tl.exp2(a - tl.max(a, axis=1, keep_dims=True)) + b, block.wait(), total
        )
    tl.store_async(y + own * size, total)
    tl.store(y + own * size + 3 * COLUMNS, tl.load(far, (3, COLUMNS)))


def products(a: tl.Pointer, out: tl.Pointer) -> None:
    """A product of streamed operands beside one of operands in TCM."""
    if pe_number():
        return
    streamed = tl.composite("gemm", tl.ref(a, (40, 70)), tl.ref(a, (70, 40)), tl.ref(out, (40, 40)))
    left = tl.load(a, (40, 80))
    tl.store(out + 1600, tl.dot(left, left.mT).to(tl.float16))
    tl.wait(streamed)


def program_of_a_grid(y: tl.Pointer) -> None:
    """One program of a launch with `grid=`."""
    number = tl.program_id(0)
    tl.store(y + number * 4, tl.full((4,), number, tl.float32))


def on_chip(_rank: int) -> None:
    """Kernels and copies of a rank."""
    device = torch.ahbm.get_device_properties()
    pes = device.cubes * device.pes_per_cube
    values = np.linspace(1, 3, pes * ROWS * COLUMNS, dtype=np.float32).reshape(-1, COLUMNS)
    x = torch.from_numpy(values, dp=ROW_WISE)
    y = torch.empty(values.shape, dtype=torch.float32, dp=ROW_WISE)
    torch.launch("moves", moves, x, y, pes)
    torch.launch("grid", program_of_a_grid, y, grid=(2 * pes,))
    y.numpy()
    state = running_rank()
    address = state.addresses.cube_sram_addr(0, 0, 64)
    state.device.submit([MemoryWriteMsg(address, 3000, bytes(3000))], "a write")
    state.device.wait(state.device.submit([MemoryReadMsg(address, 3000)], "a read"))


def in_engine(_rank: int) -> None:
    """Products on one PE."""
    a = torch.from_numpy(np.linspace(-1, 1, 3200, dtype=np.float16))
    torch.launch("products", products, a, torch.empty(3200, dtype=torch.float16))


def between_ranks(rank: int) -> None:
    """A collective and a message."""
    device = torch.ahbm.get_device_properties()
    group = torch.distributed
    group.init_process_group("ahbm")
    pes = device.cubes * device.pes_per_cube
    group.all_reduce(torch.full((pes * 200,), rank + 1.0, dp=ROW_WISE))
    if group.get_world_size() > 1 and rank < 2:
        message = torch.full((1500,), 1.0)
        (group.recv if rank else group.send)(message, 1 - rank)


def everything(rank: int) -> None:
    """All parts but the functions of the vector engine, which machines of any size have alike."""
    on_chip(rank)
    in_engine(rank)
    between_ranks(rank)


def every_function(x: tl.Pointer, y: tl.Pointer) -> None:
    """Each function of the vector engine, one after another."""
    if pe_number():
        return
    a = tl.load(x, (5, 100))
    for name in UNARY:
        with tl.scratch():
            getattr(tl, name)(a)
    with tl.scratch():
        is_less = a < 1.5
        _ = (a + a, a - a, a * a, a / a, is_less & is_less, tl.where(is_less, a, a))
        _ = (tl.fma(a, a, a), tl.maximum(a, a), tl.minimum(a, a), tl.clamp(a, 0.0, 1.0))
        _ = (tl.pow(a, a), a.to(tl.float16), tl.cat([a, a]))
        tl.full((5, 100), 1.0, tl.float32)
        tl.arange(0, 500)
    tl.store(y, a)


def functions(rank: int) -> None:
    """All functions on one PE."""
    x = torch.from_numpy(np.linspace(1, 2, 500, dtype=np.float32))
    torch.launch("functions", every_function, x, torch.empty(500, dtype=torch.float32))


@dataclass(frozen=True)
class Scenario:
    """A program, and keys of the machine on which it runs."""

    name: str
    program: Callable[[int], object]
    values: dict[str, Any] = field(default_factory=dict[str, Any])


ONE_SIP: dict[str, Any] = {"system.sips.count": 1}
GRID: dict[str, Any] = {"system.sips.count": 4, "system.sips.topology": "mesh_2d_no_wrap"}
SYSTOLIC: dict[str, Any] = ONE_SIP | {"pe.gemm.model": "systolic_os"}
CREDITS: dict[str, Any] = ONE_SIP | {"noc.flow_control": "credits"}
BANKS: dict[str, Any] = ONE_SIP | {
    "hbm.model": "banks",
    "hbm.banks.t_refi_ns": 700.0,
    "hbm.num_pcs": 2,
    "hbm.banks.count": 1,
}
ACTIVATIONS: dict[str, Any] = BANKS | {
    "hbm.banks.count": 16,
    "hbm.burst_bytes": 64,
    "hbm.banks.row_bytes": 64,
    "hbm.pc_bw_gbs": 1000.0,
    "hbm.num_pcs": 1,
}
"""A channel whose bursts are rows, and whose data take no time beside activations."""
CHIP = Scenario("chip", on_chip, ONE_SIP)
ENGINE = Scenario("engine", in_engine, ONE_SIP)
RANKS = Scenario("ranks", between_ranks)
BANKED = Scenario("banks", on_chip, BANKS)
ACTIVATED = Scenario("activations", on_chip, ACTIVATIONS)
CORNERS = Scenario("corners", on_chip, ONE_SIP | {"cube.pe_layout.corners": ["NE", "SW"]})
SCENARIOS: dict[str, Scenario] = {
    "pe.math.cycles.": Scenario("functions", functions, ONE_SIP),
    "noc.flow_control": CHIP,
    "noc.": Scenario("credits", on_chip, CREDITS),
    "hbm.banks.t_rrd_ns": ACTIVATED,
    "hbm.banks.t_faw_ns": ACTIVATED,
    "hbm.banks.": BANKED,
    "cube.pe_layout.pos_mm.NE": CORNERS,
    "cube.pe_layout.pos_mm.SW": CORNERS,
    "cube.ucie_pos_mm.N": Scenario(
        "column of cubes", on_chip, ONE_SIP | {"sip.cube_mesh.w": 1, "sip.cube_mesh.h": 2}
    ),
    "pe.gemm.rows": Scenario("systolic rows", in_engine, SYSTOLIC),
    "pe.gemm.cols": Scenario("systolic columns", in_engine, SYSTOLIC),
    "pe.gemm.": ENGINE,
    "pe.tile.": ENGINE,
    "pe.fetch_store.": ENGINE,
    "pe.scheduler.tile_buffers": ENGINE,
    "pe.tcm.collective_scratch_mb": RANKS,
    "pe.tcm.transfer_scratch_mb": RANKS,
    "pe.ipcq.": RANKS,
    "ucie.": RANKS,
    "system.components.switch.": Scenario(
        "switch", between_ranks, {"system.sips.fabric": "switch"}
    ),
    "system.sips.topology": Scenario("ring of 4", between_ranks, {"system.sips.count": 4}),
    "system.sips.w": Scenario("columns", between_ranks, GRID),
    "system.sips.h": Scenario("rows", between_ranks, GRID),
    "system.": RANKS,
}
"""The scenario of a key, by the first prefix of its path that is here."""


def scenario_of(path: str) -> Scenario:
    """The scenario on which a key acts."""
    return next((each for prefix, each in SCENARIOS.items() if path.startswith(prefix)), CHIP)
