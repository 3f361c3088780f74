"""Programs with one planted bottleneck each, and their twins without it.

A case is a program for both, or one program on two machines; `rule` is the rule that names the
plant.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from kernbench import DPPolicy, tl, torch
from runtime.core.config.config_file import with_values
from runtime.core.config.plain_yaml import to_yaml
from runtime.model.topology import load_topology

ROOT = Path(__file__).parents[2]
BLOCK = 4096
PES = 8
ONE_CUBE = DPPolicy(pe="row_wise", num_cubes=1)
ONE_PE = DPPolicy(num_cubes=1, num_pes=1)


@dataclass(frozen=True, kw_only=True)
class Bottleneck:
    """A planted bottleneck: `program(planted)` is that of a rank."""

    name: str
    rule: str
    kernel: str
    advice: str
    program: Callable[[int, bool], None]
    sips: int = 1
    machine: Mapping[str, float] = field(default_factory=dict)

    def topology(self, *, planted: bool) -> str:
        """The topology file, with the changed numbers of the plant."""
        values = load_topology().values()
        return to_yaml(with_values(values, dict(self.machine)) if planted else values)


def cubes(count: int) -> DPPolicy:
    """Rows over all PEs of the first cubes."""
    return DPPolicy(cube="row_wise", pe="row_wise", num_cubes=count)


def tensors(count: int, dp: DPPolicy = ONE_CUBE) -> tuple[torch.Tensor, torch.Tensor]:
    """An operand and a result of `count` elements."""
    x = torch.from_numpy(np.ones(count, np.float32), dp=dp)
    return x, torch.empty(count, dtype=torch.float32, dp=dp)


def doubled(x: tl.Pointer, out: tl.Pointer, count: int, block: int) -> None:
    """Kernel: out = 2 x for the `count` elements of this PE, block by block."""
    start = tl.program_id(0) * count
    for first in range(start, start + count, block):
        with tl.scratch():
            tl.store(out + first, tl.load(x + first, block) * 2.0)


def double_work(_rank: int, planted: bool) -> None:
    """PE 5 computes each block twice."""

    def scaled(x: tl.Pointer, out: tl.Pointer) -> None:
        pe = tl.program_id(0)
        for block in range(4):
            first = (pe * 4 + block) * BLOCK
            for _ in range(2 if planted and pe == 5 else 1):
                with tl.scratch():
                    tl.store(out + first, tl.exp(tl.load(x + first, BLOCK)))

    torch.launch("scaled", scaled, *tensors(PES * 4 * BLOCK))


def needless_barrier(_rank: int, planted: bool) -> None:
    """A barrier of all PEs behind each block, which no other PE reads."""

    def stepped(x: tl.Pointer, out: tl.Pointer) -> None:
        pe = tl.program_id(1) * PES + tl.program_id(0)
        for block in range(4):
            first = (pe * 4 + block) * BLOCK
            with tl.scratch():
                tl.store(out + first, tl.load(x + first, BLOCK) * 2.0)
            if planted:
                tl.barrier()

    torch.launch("stepped", stepped, *tensors(4 * PES * 4 * BLOCK, cubes(4)))


def far_reader(_rank: int, planted: bool) -> None:
    """Each PE of cube 0 reads the part of its neighbour of cube 1."""

    def fetched(x: tl.Pointer, out: tl.Pointer) -> None:
        for block in range(8):
            first = (8 + tl.program_id(0)) * 8 * BLOCK + block * BLOCK
            if tl.program_id(1) == 0:
                with tl.scratch():
                    values = tl.load(x + first, BLOCK)
                    tl.store(out + first - 64 * BLOCK, values)

    x, out = tensors(2 * PES * 8 * BLOCK, cubes(2))
    torch.launch("fetched", fetched, x, out)


def slow_channels(_rank: int, planted: bool) -> None:
    """The number of the machine is the plant."""
    torch.launch("doubled", doubled, *tensors(PES * 8 * BLOCK), 8 * BLOCK, BLOCK)


def tiny_blocks(_rank: int, planted: bool) -> None:
    """Blocks of 128 elements."""
    size = 128 if planted else BLOCK
    torch.launch("doubled", doubled, *tensors(PES * 4 * BLOCK), 4 * BLOCK, size)


def far_operands(_rank: int, planted: bool) -> None:
    """Each PE reads the part of a PE of another cube; its result is its own."""

    def gathered(x: tl.Pointer, out: tl.Pointer) -> None:
        cube, pe, cubes = tl.program_id(1), tl.program_id(0), tl.num_programs(1)
        source = (cubes - 1 - cube if planted else cube) * PES + pe
        for block in range(3):
            with tl.scratch():
                values = tl.load(x + (source * 3 + block) * BLOCK, BLOCK)
                tl.store(out + ((cube * PES + pe) * 3 + block) * BLOCK, values * 2.0)

    torch.launch("gathered", gathered, *tensors(4 * PES * 3 * BLOCK, cubes(4)))


def serial_loop(_rank: int, planted: bool) -> None:
    """A load, a computation and a store at a time; the twin has two buffers of each."""

    def pipelined(x: tl.Pointer, out: tl.Pointer, blocks: int) -> None:
        start = tl.program_id(0) * blocks * BLOCK
        loads = [tl.load_async(x + start + first, BLOCK) for first in (0, BLOCK)]
        results: list[tl.Value | None] = [None, None]
        for index in range(blocks):
            buffer = index % 2
            block = loads[buffer].wait()
            results[buffer] = tl.fused(tl.exp, block, out=results[buffer])
            tl.store_async(out + start + index * BLOCK, results[buffer])
            if index + 2 < blocks:
                behind = x + start + (index + 2) * BLOCK
                loads[buffer] = tl.load_async(behind, BLOCK, out=block)

    def serial(x: tl.Pointer, out: tl.Pointer, blocks: int) -> None:
        start = tl.program_id(0) * blocks * BLOCK
        for index in range(blocks):
            with tl.scratch():
                first = start + index * BLOCK
                tl.store(out + first, tl.exp(tl.load(x + first, BLOCK)))

    kernel = serial if planted else pipelined
    torch.launch("serial", kernel, *tensors(PES * 16 * BLOCK), 16)


def launch_bound(_rank: int, planted: bool) -> None:
    """A launch for each block; the twin has the loop in its kernel."""
    x, out = tensors(PES * 16 * BLOCK)
    if planted:

        def one(x: tl.Pointer, out: tl.Pointer, index: int) -> None:
            first = (tl.program_id(0) * 16 + index) * BLOCK
            tl.store(out + first, tl.load(x + first, BLOCK) * 2.0)

        for index in range(16):
            torch.launch("doubled", one, x, out, index)
    else:
        torch.launch("doubled", doubled, x, out, 16 * BLOCK, BLOCK)


def hot_slice(_rank: int, planted: bool) -> None:
    """The operand lies in the slice of PE 0."""
    count = PES * 4 * BLOCK
    dp = DPPolicy(pe="row_wise", num_cubes=1, num_pes=1 if planted else PES)
    x = torch.from_numpy(np.ones(count, np.float32), dp=dp)
    out = torch.empty(count, dtype=torch.float32, dp=ONE_CUBE)
    torch.launch("doubled", doubled, x, out, 4 * BLOCK, BLOCK)


def uneven_ranks(rank: int, planted: bool) -> None:
    """Rank 1 has three times the blocks of rank 0, before both meet."""

    def shared(x: tl.Pointer, out: tl.Pointer, blocks: int) -> None:
        for block in range(blocks):
            first = (tl.program_id(0) * 18 + block) * BLOCK
            with tl.scratch():
                tl.store(out + first, tl.load(x + first, BLOCK) * 2.0)

    torch.distributed.init_process_group("ahbm")
    x, out = tensors(PES * 18 * BLOCK)
    torch.launch("shared", shared, x, out, (18 if rank else 6) if planted else 12)
    torch.distributed.all_reduce(torch.zeros(64, dtype=torch.float32, dp=ONE_PE))


def host_copies(_rank: int, planted: bool) -> None:
    """The result is copied to the host behind each launch."""
    x, out = tensors(PES * 4 * BLOCK)
    for _ in range(4):
        torch.launch("doubled", doubled, x, out, 4 * BLOCK, BLOCK)
        if planted:
            out.numpy()


def slow_algorithm(rank: int, planted: bool) -> None:
    """An all-reduce of 128 KiB by an algorithm that sends all bytes p-1 times."""
    torch.distributed.init_process_group("ahbm", algorithm="ring_naive" if planted else "auto")
    x = torch.zeros(32768, dtype=torch.float32, dp=ONE_PE)
    torch.distributed.all_reduce(x)


CASES = (
    Bottleneck(
        name="double work", rule="balance", kernel="scaled", advice="move work", program=double_work
    ),
    Bottleneck(
        name="needless barrier",
        rule="barrier",
        kernel="stepped",
        advice="leave out the barrier",
        program=needless_barrier,
    ),
    Bottleneck(
        name="slow link",
        rule="number",
        kernel="fetched",
        advice="ucie.bw_gbs",
        program=far_reader,
        machine={"ucie.bw_gbs": 16},
    ),
    Bottleneck(
        name="slow channels",
        rule="number",
        kernel="doubled",
        advice="hbm.pc_bw_gbs",
        program=slow_channels,
        machine={"hbm.pc_bw_gbs": 4},
    ),
    Bottleneck(
        name="tiny blocks",
        rule="blocks",
        kernel="doubled",
        advice="larger blocks",
        program=tiny_blocks,
    ),
    Bottleneck(
        name="far operands",
        rule="far operands",
        kernel="gathered",
        advice="place",
        program=far_operands,
    ),
    Bottleneck(
        name="serial loop",
        rule="overlap",
        kernel="serial",
        advice="two buffers",
        program=serial_loop,
    ),
    Bottleneck(
        name="launch bound",
        rule="launches",
        kernel="doubled",
        advice="one launch",
        program=launch_bound,
    ),
    Bottleneck(
        name="hot slice", rule="hot slice", kernel="doubled", advice="place", program=hot_slice
    ),
    Bottleneck(
        name="uneven ranks",
        rule="balance",
        kernel="shared",
        advice="move work",
        program=uneven_ranks,
        sips=2,
    ),
    Bottleneck(
        name="host copies", rule="copies", kernel="doubled", advice="keep", program=host_copies
    ),
    Bottleneck(
        name="slow algorithm",
        rule="algorithm",
        kernel="all_reduce",
        advice="algorithm ring",
        program=slow_algorithm,
        sips=4,
    ),
)
