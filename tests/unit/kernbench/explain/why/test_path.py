"""The critical path of hand-made runs, of which every piece is known."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from kernbench.explain.records import open_run
from kernbench.explain.why.path import CriticalPath, critical_path
from kernbench.explain.why.piece import PieceKind
from tests.support.hand_made_runs import a_slot_and_its_credit, one_kernel
from tests.support.run_tables import Row, command, op, program, step, tables, write_run


def path_of(tmp_path: Path, *sips: Mapping[str, Sequence[Row]], total_ps: int = 1000):
    return critical_path(open_run(write_run(tmp_path / "run", sips, total_ps)))


def shown(path: CriticalPath) -> list[tuple[int, str, str]]:
    return [(each.end_ps, str(each.kind), each.component) for each in path.pieces]


def test_a_kernel_is_a_chain_of_its_steps_between_launch_and_report(tmp_path: Path):
    pe = "cube2.pe1"
    assert shown(path_of(tmp_path, one_kernel())) == [
        (10, "host", "host"),
        (100, "launch", "io.io_cpu"),
        (200, "launch", "io.io_cpu"),
        (203, "issue", f"{pe}.pe_cpu"),
        (204, "memory", f"{pe}.pe_cpu"),
        (210, "queue", f"{pe}.pe_dma"),
        (298, "memory", f"{pe}.pe_dma"),
        (300, "memory", f"{pe}.pe_cpu"),
        (303, "issue", f"{pe}.pe_cpu"),
        (350, "compute", f"{pe}.pe_math"),
        (353, "issue", f"{pe}.pe_cpu"),
        (354, "memory", f"{pe}.pe_cpu"),
        (754, "memory", f"{pe}.pe_dma"),
        (800, "queue", "a->b"),
        (900, "queue", f"{pe}.pe_dma"),
        (1000, "launch", "io.io_cpu"),
    ]


def test_pieces_have_the_statement_that_caused_them(tmp_path: Path):
    lines = {each.line for each in path_of(tmp_path, one_kernel()).pieces}
    assert lines == {"p.py:3", "k.py:1", "k.py:2", "k.py:3"}


def test_a_receive_leads_to_the_send_and_a_send_without_credit_to_the_receive(tmp_path: Path):
    path = path_of(tmp_path, *a_slot_and_its_credit())
    assert [(p.begin_ps, p.end_ps, p.sip, p.what) for p in path.pieces] == [
        (0, 60, 0, "way of KernelLaunchMsg"),
        (60, 110, 0, "launch k"),
        (110, 113, 0, "issue send"),
        (113, 300, 0, "slot sip0.cube0.pe0 -> sip1.cube0.pe0"),
        (300, 340, 1, "ipcq_recv"),
        (340, 400, 0, "credit sip1.cube0.pe0 -> sip0.cube0.pe0"),
        (400, 420, 0, "ipcq_send"),
        (420, 600, 0, "slot sip0.cube0.pe0 -> sip1.cube0.pe0"),
        (600, 690, 1, "ipcq_recv"),
        (690, 700, 1, "recv"),
        (700, 1000, 1, "report of KernelLaunchMsg"),
    ]
    assert path.unexplained_ps == 0


def test_an_operation_in_a_queue_leads_to_the_operation_that_had_the_engine(tmp_path: Path):
    pe = {"cube": 0, "pe": 0}
    of_kernel = tables(
        ops=[
            op("pe_dma", "load", 10, 60, requested_ps=10, step=1, **pe),
            op("pe_dma", "load", 60, 95, requested_ps=20, cause="channel", step=2, **pe),
        ],
        programs=[program(1, 5, 100, command=0, **pe), program(0, 0, 100)],
        steps=[
            step(1, "load_async", 5, 10, step=1, issued_ps=10, line="k.py:1"),
            step(1, "load", 10, 100, step=2, issued_ps=20, released_by=1, line="k.py:2"),
            step(0, "synchronize", 0, 100),
        ],
        commands=[command(0, "KernelLaunchMsg", 0, 5, 100)],
    )
    path = path_of(tmp_path, of_kernel, total_ps=100)
    assert [(p.end_ps, p.what, p.line) for p in path.pieces] == [
        (5, "way of KernelLaunchMsg", ""),
        (10, "issue load_async", "k.py:1"),
        (60, "load", "k.py:1"),
        (95, "load", "k.py:2"),
        (100, "load", "k.py:2"),
    ]


def test_a_barrier_leads_to_the_pe_that_came_last(tmp_path: Path):
    first, second = {"cube": 0, "pe": 0}, {"cube": 0, "pe": 1}
    both = tables(
        programs=[
            program(2, 10, 90, command=0, **second),
            program(1, 10, 90, command=0, **first),
            program(0, 0, 90),
        ],
        steps=[
            step(2, "math add", 10, 60, step=3, line="k.py:1"),
            step(1, "barrier", 10, 80, step=1, issued_ps=13, line="k.py:2"),
            step(2, "barrier", 60, 82, step=4, issued_ps=63, line="k.py:2"),
            step(1, "math exp", 80, 90, step=2, line="k.py:3"),
            step(2, "math exp", 82, 90, step=5, line="k.py:3"),
            step(0, "synchronize", 0, 90),
        ],
        commands=[command(0, "KernelLaunchMsg", 0, 5, 90)],
    )
    path = path_of(tmp_path, both, total_ps=90)
    assert [(p.end_ps, p.pe, p.what) for p in path.pieces[2:]] == [
        (60, 1, "math add"),
        (63, 1, "issue barrier"),
        (80, 1, "barrier"),
        (90, 0, "math exp"),
    ]


def test_commands_of_a_stream_follow_each_other(tmp_path: Path):
    pe = {"cube": 0, "pe": 0}
    two = tables(
        programs=[
            program(1, 150, 250, command=1, **pe),
            program(2, 450, 500, command=2, **pe),
            program(0, 0, 600),
        ],
        steps=[
            step(1, "math add", 150, 250, line="k.py:1"),
            step(2, "math add", 450, 500, line="k.py:1"),
            step(0, "synchronize", 0, 600),
        ],
        commands=[
            command(0, "MmuMapMsg", 0, 40, 120),
            command(1, "KernelLaunchMsg", 0, 100, 400, after=0, line="p.py:1"),
            command(2, "KernelLaunchMsg", 0, 300, 600, after=1, line="p.py:2"),
        ],
    )
    path = path_of(tmp_path, two, total_ps=600)
    assert [(p.end_ps, p.what, p.command) for p in path.pieces if p.command != -1] == [
        (40, "way of MmuMapMsg", 0),
        (100, "execution of MmuMapMsg", 0),
        (150, "launch ", 1),
        (300, "report of KernelLaunchMsg", 1),
        (450, "launch ", 2),
        (600, "report of KernelLaunchMsg", 2),
    ]


def test_a_command_that_began_on_its_arrival_came_from_the_rank_program(tmp_path: Path):
    one = tables(
        programs=[program(0, 0, 300)],
        steps=[
            step(0, "host", 0, 100, step=1, line="p.py:1"),
            step(0, "copy", 100, 300, step=2, line="p.py:2"),
        ],
        # The command 0 was answered before command 1 left the host.
        commands=[
            command(0, "MmuMapMsg", 0, 40, 90),
            command(1, "MemoryReadMsg", 100, 150, 300, after=0),
        ],
    )
    path = path_of(tmp_path, one, total_ps=300)
    assert [(p.end_ps, str(p.kind), p.what) for p in path.pieces] == [
        (100, "host", "host"),
        (150, "memory", "way of MemoryReadMsg"),
        (300, "memory", "execution of MemoryReadMsg"),
    ]


def test_messages_in_flight_after_the_last_rank_belong_to_the_path(tmp_path: Path):
    path = path_of(tmp_path, one_kernel(), total_ps=1007)
    assert (path.pieces[-1].what, path.pieces[-1].length_ps) == ("messages in flight", 7)


def test_a_command_that_no_program_waited_for_ends_the_path(tmp_path: Path):
    sip = dict(one_kernel())
    # The rank program has returned at once, before its launch was answered.
    sip["programs"] = [{**row, "end_ps": min(row["end_ps"], 900)} for row in sip["programs"]]
    sip["programs"][-1]["end_ps"] = 0
    sip["steps"] = [row for row in sip["steps"] if row["program"] == 1]
    whole = path_of(tmp_path / "whole", one_kernel())
    assert shown(path_of(tmp_path / "returned", sip)) == shown(whole)


def test_a_path_has_no_gaps(tmp_path: Path):
    path = path_of(tmp_path, *a_slot_and_its_credit())
    ends = [0, *(each.end_ps for each in path.pieces)]
    assert [each.begin_ps for each in path.pieces] == ends[:-1]
    assert ends[-1] == path.total_ps


def test_a_kernel_without_launch_is_unexplained_before_its_begin(tmp_path: Path):
    sip = dict(one_kernel())
    sip["programs"] = [{**row, "command": -1} for row in sip["programs"]]
    sip["commands"] = []
    of_kernel = [row for row in sip["steps"] if row["program"] == 1]
    sip["steps"] = [*of_kernel, step(0, "synchronize", 0, 1000, released_by=2)]
    path = path_of(tmp_path, sip)
    assert (path.unexplained_ps, path.pieces[0].kind) == (200, PieceKind.UNEXPLAINED)
