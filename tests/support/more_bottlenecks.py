"""Further planted bottlenecks: numbers of the machine, and variants of those of `bottlenecks`."""

import numpy as np

from kernbench import DPPolicy, tl, torch
from tests.support.bottlenecks import (
    BLOCK,
    ONE_PE,
    PES,
    Bottleneck,
    cubes,
    far_reader,
    host_copies,
    slow_channels,
    tensors,
)


def launches(_rank: int, planted: bool) -> None:
    """Four launches that compute exponentials."""

    def powers(x: tl.Pointer, out: tl.Pointer) -> None:
        for block in range(4):
            first = (tl.program_id(0) * 4 + block) * BLOCK
            with tl.scratch():
                tl.store(out + first, tl.exp(tl.load(x + first, BLOCK)))

    operands = tensors(PES * 4 * BLOCK)
    for _ in range(4):
        torch.launch("powers", powers, *operands)


def copies(rank: int, planted: bool) -> None:
    """The result is copied to the host behind each launch, on both machines."""
    host_copies(rank, True)


def products(_rank: int, planted: bool) -> None:
    """A product on each PE of two cubes; the plant has the operands in the other cube."""

    def product(a: tl.Pointer, b: tl.Pointer, c: tl.Pointer) -> None:
        cube, pe = tl.program_id(1), tl.program_id(0)
        own = cube * PES + pe
        source = ((1 - cube) if planted else cube) * PES + pe
        left = tl.ref(a + source * 64 * 256, (64, 256))
        right = tl.ref(b + source * 256 * 64, (256, 64))
        tl.wait(tl.composite("gemm", left, right, tl.ref(c + own * 64 * 64, (64, 64))))

    def matrix(rows: int, columns: int) -> torch.Tensor:
        return torch.from_numpy(np.ones((rows, columns), np.float16), dp=cubes(2))

    out = torch.empty(16 * 64, 64, dtype=torch.float16, dp=cubes(2))
    torch.launch("product", product, matrix(16 * 64, 256), matrix(16 * 256, 64), out)


def own_products(rank: int, planted: bool) -> None:
    """Products of own operands, on both machines."""
    products(rank, False)


def more_computation(_rank: int, planted: bool) -> None:
    """PE 2 computes four times as long for the same bytes."""

    def computed(x: tl.Pointer, out: tl.Pointer) -> None:
        pe = tl.program_id(0)
        for block in range(4):
            first = (pe * 4 + block) * BLOCK
            with tl.scratch():
                value = tl.load(x + first, BLOCK)
                for _ in range(4 if planted and pe == 2 else 1):
                    value = tl.exp(value)
                tl.store(out + first, value)

    torch.launch("computed", computed, *tensors(PES * 4 * BLOCK))


def barriers_of_turns(_rank: int, planted: bool) -> None:
    """Each PE has the long block of one turn; a barrier behind each turn makes all wait."""

    def turns(x: tl.Pointer, out: tl.Pointer) -> None:
        pe = tl.program_id(0)
        for block in range(PES):
            first = (pe * PES + block) * BLOCK
            with tl.scratch():
                value = tl.load(x + first, BLOCK)
                for _ in range(4 if pe == block else 1):
                    value = tl.exp(value)
                tl.store(out + first, value)
            if planted:
                tl.barrier()

    torch.launch("turns", turns, *tensors(PES * PES * BLOCK))


def barriers_of_cubes(_rank: int, planted: bool) -> None:
    """A barrier of each cube behind each block."""

    def stepped(x: tl.Pointer, out: tl.Pointer) -> None:
        pe = tl.program_id(1) * PES + tl.program_id(0)
        for block in range(6):
            first = (pe * 6 + block) * 512
            with tl.scratch():
                tl.store(out + first, tl.load(x + first, 512) * 2.0)
            if planted:
                tl.barrier("cube")

    torch.launch("stepped", stepped, *tensors(4 * PES * 6 * 512, cubes(4)))


def shared_operand(_rank: int, planted: bool) -> None:
    """All PEs read the same bytes; the twin has a part for each."""

    def shared(x: tl.Pointer, out: tl.Pointer, stride: int) -> None:
        pe = tl.program_id(1) * PES + tl.program_id(0)
        for block in range(3):
            with tl.scratch():
                value = tl.load(x + pe * stride + block * BLOCK, BLOCK)
                tl.store(out + (pe * 3 + block) * BLOCK, value * 2.0)

    x, out = tensors(4 * PES * 3 * BLOCK, cubes(4))
    one = torch.from_numpy(np.ones(3 * BLOCK, np.float32), dp=ONE_PE)
    torch.launch("shared", shared, one if planted else x, out, 0 if planted else 3 * BLOCK)


def synchronised_launches(_rank: int, planted: bool) -> None:
    """The program waits for each launch of a block; the twin has one launch."""

    def part(x: tl.Pointer, out: tl.Pointer, first: int, blocks: int) -> None:
        for block in range(first, first + blocks):
            place = (tl.program_id(0) * 8 + block) * BLOCK
            with tl.scratch():
                tl.store(out + place, tl.load(x + place, BLOCK) * 2.0)

    operands = tensors(PES * 8 * BLOCK)
    for first in range(8) if planted else (0,):
        torch.launch("part", part, *operands, first, 1 if planted else 8)
        torch.ahbm.synchronize()


def one_of_four_ranks(rank: int, planted: bool) -> None:
    """Rank 2 has twice the blocks of the others."""

    def some(x: tl.Pointer, out: tl.Pointer, blocks: int) -> None:
        for block in range(blocks):
            first = (tl.program_id(0) * 8 + block) * BLOCK
            with tl.scratch():
                tl.store(out + first, tl.load(x + first, BLOCK) * 2.0)

    torch.distributed.init_process_group("ahbm")
    x, out = tensors(PES * 8 * BLOCK)
    torch.launch("some", some, x, out, 8 if planted and rank == 2 else 4)
    meeting = torch.empty(64, dtype=torch.float32, dp=DPPolicy(num_cubes=1, num_pes=1))
    torch.distributed.all_reduce(meeting)


def small_ring(rank: int, planted: bool) -> None:
    """An all-reduce of 256 B round a ring."""
    torch.distributed.init_process_group("ahbm", algorithm="ring" if planted else "auto")
    torch.distributed.all_reduce(torch.empty(64, dtype=torch.float32, dp=ONE_PE))


def large_tree(rank: int, planted: bool) -> None:
    """An all-reduce of 64 KiB over a tree."""
    torch.distributed.init_process_group("ahbm", algorithm="tree" if planted else "auto")
    torch.distributed.all_reduce(torch.empty(16384, dtype=torch.float32, dp=ONE_PE))


_PROGRAMS = {
    "doubled": slow_channels,
    "fetched": far_reader,
    "powers": launches,
    "product": own_products,
}
_NUMBERS: dict[str, tuple[str, float]] = {
    "xbar.to_hbm_bw_gbs": ("doubled", 32),
    "cube.hbm_ctrl.efficiency": ("doubled", 0.2),
    "cube.hbm_ctrl.latency_ns": ("doubled", 520),
    "cube.noc.link_bw_gbs": ("fetched", 16),
    "pe.math.clock_ghz": ("powers", 0.25),
    "pe.cpu.overhead_ns": ("powers", 40),
    "pe.tcm.bw_gbs": ("powers", 32),
    "sip.io_chiplet.io_cpu.launch_margin_ns": ("powers", 2000),
    "host.launch_overhead_ns": ("powers", 4000),
    "pe.gemm.clock_ghz": ("product", 0.05),
    "hbm.pc_bw_gbs": ("product", 4),
}
_COPY_NUMBERS: dict[str, float] = {
    "sip.io_chiplet.pcie_ep.bw_gbs": 8,
    "sip.io_chiplet.pcie_ep.overhead_ns": 3000,
}
NUMBERS = (
    *(
        Bottleneck(
            name=key,
            rule="number",
            kernel=kernel,
            advice=key,
            program=_PROGRAMS[kernel],
            machine={key: value},
        )
        for key, (kernel, value) in _NUMBERS.items()
    ),
    *(
        Bottleneck(
            name=key,
            rule="number",
            kernel="doubled",
            advice=key,
            program=copies,
            machine={key: value},
        )
        for key, value in _COPY_NUMBERS.items()
    ),
)
VARIANTS = tuple(
    Bottleneck(name=name, rule=rule, kernel=kernel, advice=advice, program=program, sips=sips)
    for name, rule, kernel, advice, program, sips in (
        ("more computation", "balance", "computed", "move work", more_computation, 1),
        ("barriers of turns", "barrier", "turns", "leave out", barriers_of_turns, 1),
        ("barriers of cubes", "barrier", "stepped", "leave out", barriers_of_cubes, 1),
        ("far products", "far operands", "product", "place", products, 1),
        ("shared operand", "hot slice", "shared", "keep a copy", shared_operand, 1),
        ("synchronised", "launches", "part", "one launch", synchronised_launches, 1),
        ("one of four ranks", "balance", "some", "move work", one_of_four_ranks, 4),
        ("small ring", "algorithm", "all_reduce", "recursive_doubling", small_ring, 4),
        ("large tree", "algorithm", "all_reduce", "algorithm", large_tree, 2),
    )
)
