"""The parts of a time, from the records of a log."""

from kernbench.studies.milestone_gqa_llama70b.op_log import WorkIntervals
from runtime.core.trace import OpRecord


def record(engine: str, name: str, start_ps: int, end_ps: int, pe: int = 0) -> OpRecord:
    return OpRecord(engine, name, start_ps, end_ps, cube=0, pe=pe)


def test_a_moment_counts_for_the_first_part_that_works():
    works = WorkIntervals()
    works.add(
        0,
        [
            record("pe_dma", "load", 100, 130),
            record("pe_gemm", "gemm", 120, 160),
            record("pe_gemm", "gemm", 160, 180),
            record("pe_math", "exp", 150, 210),
        ],
    )
    works.add(
        0,
        [
            record("pe_dma", "ipcq_send", 205, 230),
            record("pe_dma", "store", 290, 330),
            record("pe_cpu", "kernel x", 100, 300),
            record("pe_cpu", "kernel x", 100, 400, pe=1),
            record("host", "KernelLaunchMsg", 0, 500),
        ],
    )
    parts = works.parts()
    # Two PEs, of which the second only waits: its 300 ps are `other`. The store ends after its
    # kernel, which counts 10 ps of it.
    assert parts.gemm_ps == 60 / 2
    assert parts.vector_ps == 30 / 2
    assert parts.memory_ps == (20 + 10) / 2
    assert parts.message_ps == 20 / 2
    assert parts.other_ps == (60 + 300) / 2
    assert parts.idle_ps == 100 / 2
    assert parts.total_ps == 300
