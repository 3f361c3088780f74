"""A run of two ranks, made by hand: a product from 5 to 10 us beside an all-reduce from 6 to 12 us.

Rank r sends one slot to the other rank, which arrives at 9 us and is copied out by 10 us.
"""

from pathlib import Path

from tests.support.run_tables import command, op, program, step, tables, write_run

US_PS = 1_000_000
TOTAL_PS = 20 * US_PS
BIN_PS = 1024


def hand_made_run(directory: Path) -> Path:
    """Write the run."""
    return write_run(directory, [_sip(0), _sip(1)], TOTAL_PS)


def slot_of(sip: int) -> int:
    """The address of the slot in which a rank receives."""
    return 4096 * (sip + 1)


def _sip(sip: int):
    on_pe = {"cube": 0, "pe": 0}
    launch = "KernelLaunchMsg"
    sent, received = {"address": slot_of(1 - sip)}, {"read_address": slot_of(sip)}
    return tables(
        programs=[
            program(0, 0, TOTAL_PS, thread="rank", kernel="main"),
            program(1, 2 * US_PS, 10 * US_PS, thread="kernels", kernel="gemm", command=1, **on_pe),
            program(
                2,
                6 * US_PS,
                12 * US_PS,
                thread="collective",
                kernel="all_reduce.ring",
                command=2,
                **on_pe,
            ),
        ],
        steps=[
            step(0, "synchronize", 0, TOTAL_PS, line="train.py:9"),
            step(
                1,
                "load",
                2 * US_PS,
                5 * US_PS,
                step=1,
                line="kernel.py:4",
                cause="operand",
                scratch_bytes=256,
            ),
            step(1, "dot", 5 * US_PS, 10 * US_PS, step=2, line="kernel.py:5", scratch_bytes=768),
            step(2, "send", 6 * US_PS, 7 * US_PS, step=3, line="ring.py:20", scratch_bytes=64),
            step(2, "recv", 7 * US_PS, 12 * US_PS, step=4, line="ring.py:21", cause="slot"),
        ],
        commands=[
            command(1, launch, 0, US_PS, 11 * US_PS, stream=0, why="gemm", line="train.py:3"),
            command(2, launch, 0, 5 * US_PS, 13 * US_PS, stream=1, why="all_reduce"),
        ],
        ops=[
            op("pe_dma", "load", 2 * US_PS, 5 * US_PS, nbytes=256, step=1, **on_pe),
            op("pe_gemm", "gemm", 5 * US_PS, 10 * US_PS, step=2, **on_pe),
            op("pe_dma", "ipcq_send", 6 * US_PS, 7 * US_PS, step=3, **sent, **on_pe),
            op("pe_ipcq", "arrival", 6 * US_PS, 9 * US_PS, address=slot_of(sip), **on_pe),
            op("pe_dma", "ipcq_recv", 9 * US_PS, 10 * US_PS, step=4, **received, **on_pe),
        ],
        links=[
            {"link": "a->b", "kind": "link", "bin": 0, "busy_ps": 512, "queued_ps": 256},
            {"link": "a->b", "kind": "link", "bin": 3, "busy_ps": 1024},
        ],
    )
