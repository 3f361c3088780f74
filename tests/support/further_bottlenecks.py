"""Further planted bottlenecks: slow parts of the machine, and habits of kernels."""

import numpy as np

from kernbench import tl, torch
from tests.support.bottlenecks import (
    BLOCK,
    ONE_CUBE,
    ONE_PE,
    PES,
    Bottleneck,
    cubes,
    doubled,
    slow_channels,
    tensors,
)
from tests.support.more_bottlenecks import launches


def unbalanced_rows(_rank: int, planted: bool) -> None:
    """PE 0 has 15 of 64 rows; in the twin all have 8."""

    def rows(x: tl.Pointer, out: tl.Pointer) -> None:
        pe = tl.program_id(0)
        uneven = 15 if pe == 0 else 7
        for row in range(uneven if planted else 8):
            first = (pe * 16 + row) * BLOCK
            with tl.scratch():
                tl.store(out + first, tl.load(x + first, BLOCK) * 2.0)

    torch.launch("rows", rows, *tensors(PES * 16 * BLOCK))


def strided_columns(_rank: int, planted: bool) -> None:
    """Columns of 256 B, 2 KiB from row to row: one of eight channels has all of them."""

    def columns(x: tl.Pointer, out: tl.Pointer) -> None:
        pe = tl.program_id(0)
        for block in range(4):
            first = (pe * 256 + block * 64) * 512
            stride = 512 if planted else 64
            with tl.scratch():
                values = tl.load(x + first, (64, 64), strides=(stride, 1))
                tl.store(out + (pe * 4 + block) * 4096, values)

    x = torch.empty(PES * 256 * 512, dtype=torch.float32, dp=ONE_CUBE)
    torch.launch("columns", columns, x, tensors(PES * 4 * 4096)[1])


def small_sends(rank: int, planted: bool) -> None:
    """Rank 0 sends 64 KiB in messages of 256 B."""

    def talk(x: tl.Pointer, sends: bool) -> None:
        size = 64 if planted else 4096
        for first in range(0, 16384, size):
            with tl.scratch():
                if sends:
                    tl.send("global_E", tl.load(x + first, size))
                else:
                    tl.store(x + first, tl.recv("global_W", (size,), tl.float32))

    torch.distributed.init_process_group("ahbm", algorithm="ring")
    torch.launch("talk", talk, torch.empty(16384, dtype=torch.float32, dp=ONE_PE), rank == 0)


def redundant_casts(_rank: int, planted: bool) -> None:
    """Values are converted to float16 and back."""

    def casts(x: tl.Pointer, out: tl.Pointer) -> None:
        for block in range(8):
            first = (tl.program_id(0) * 8 + block) * BLOCK
            with tl.scratch():
                values = tl.load(x + first, BLOCK)
                if planted:
                    values = values.to(tl.float16).to(tl.float32)
                tl.store(out + first, tl.exp(values))

    torch.launch("casts", casts, *tensors(PES * 8 * BLOCK))


def late_copies(_rank: int, planted: bool) -> None:
    """The operand of a later program is copied before each launch."""
    x, out = tensors(PES * 8 * BLOCK)
    later = torch.empty(PES * 2 * BLOCK, dtype=torch.float32, dp=ONE_CUBE)
    for _ in range(3):
        if planted:
            later.copy_(np.zeros(PES * 2 * BLOCK, np.float32))
        torch.launch("doubled", doubled, x, out, 8 * BLOCK, BLOCK)


def cube_barrier_in_a_loop(_rank: int, planted: bool) -> None:
    """A barrier of each cube behind each of twelve blocks."""

    def looped(x: tl.Pointer, out: tl.Pointer) -> None:
        pe = tl.program_id(1) * PES + tl.program_id(0)
        for block in range(12):
            first = (pe * 12 + block) * 1024
            with tl.scratch():
                tl.store(out + first, tl.exp(tl.load(x + first, 1024)))
            if planted:
                tl.barrier("cube")

    torch.launch("looped", looped, *tensors(2 * PES * 12 * 1024, cubes(2)))


FURTHER = (
    Bottleneck(
        name="slow-pe",
        rule="part",
        kernel="powers",
        advice="cube0.pe3 as the other parts of its kind",
        program=launches,
        machine={"overrides[cube0.pe3].clock_ghz": 0.25},
    ),
    Bottleneck(
        name="slow-slice",
        rule="part",
        kernel="doubled",
        advice="cube0.pe2.hbm_ctrl as the other parts",
        program=slow_channels,
        machine={"overrides[cube0.pe2.hbm_ctrl].pc_bw_gbs": 8},
    ),
    Bottleneck(
        name="unbalanced-rows",
        rule="balance",
        kernel="rows",
        advice="move work of sip0.cube0.pe0",
        program=unbalanced_rows,
    ),
    Bottleneck(
        name="strided-columns",
        rule="channels",
        kernel="columns",
        advice="a stride that is no multiple of hbm.burst_bytes x hbm.num_pcs",
        program=strided_columns,
    ),
    Bottleneck(
        name="small-sends",
        rule="blocks",
        kernel="talk",
        advice="larger blocks",
        program=small_sends,
        sips=2,
    ),
    Bottleneck(
        name="redundant-casts",
        rule="conversions",
        kernel="casts",
        advice="leave out the conversions",
        program=redundant_casts,
    ),
    Bottleneck(
        name="late-copies",
        rule="copies",
        kernel="doubled",
        advice="copy on another stream",
        program=late_copies,
    ),
    Bottleneck(
        name="cube-barrier-in-a-loop",
        rule="barrier",
        kernel="looped",
        advice="leave out the barrier",
        program=cube_barrier_in_a_loop,
    ),
)
