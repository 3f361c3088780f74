"""The closed forms of work against those of `probe`, which simulations confirm."""

from fractions import Fraction

import pytest

from kernbench.explain.why.machine_times import MachineTimes, WorkTime
from kernbench.explain.why.work import (
    HostCopyWork,
    IssueWork,
    LaunchReportWork,
    LaunchWork,
    OperandWork,
    QueueWork,
    TransferWork,
    VectorsWork,
)
from kernbench.measure.transfers.cases import ProbeCases
from kernbench.oracle.theory.paths.routes import RouteEnd
from runtime.core.config.config_file import default_file, with_values
from runtime.model.topology import Topology, parse_topology

TEXT = default_file("topology.yaml").read_text()
TOPOLOGY = parse_topology(TEXT, "topology.yaml", 2)
PE = RouteEnd("pe", 0, 0, 0)


def with_number(key: str, value: float) -> MachineTimes:
    import yaml

    text = yaml.safe_dump(with_values(TOPOLOGY.values(), {key: value}))
    return MachineTimes(parse_topology(text, "changed.yaml", 2))


def closed_form_ps(topology: Topology, name: str, operation: str, nbytes: int) -> int:
    cases = ProbeCases(topology)
    [case] = [each for each in cases.cases if each.name == name]
    return cases.closed_form(case, operation, nbytes).total_ps  # pyright: ignore[reportArgumentType]


def alone_ps(time: WorkTime) -> Fraction:
    return time.fixed_ps + time.bytes_ps


@pytest.mark.parametrize("nbytes", [256, 4096, 65536, 1 << 20])
@pytest.mark.parametrize(
    ("name", "memory"),
    [("dma-own", RouteEnd("hbm", 0, 0, 0)), ("dma-sram", RouteEnd("sram", 0, 0, -1))],
)
def test_a_transfer_takes_the_time_of_probe(name: str, memory: RouteEnd, nbytes: int):
    times = MachineTimes(TOPOLOGY)
    read = times.of(TransferWork("read", memory, PE, nbytes))
    write = times.of(TransferWork("write", PE, memory, nbytes))
    assert alone_ps(read) == closed_form_ps(TOPOLOGY, name, "read", nbytes)
    assert alone_ps(write) == closed_form_ps(TOPOLOGY, name, "write", nbytes)


def test_a_transfer_to_the_next_sip_takes_the_time_of_probe():
    there = RouteEnd("hbm", 1, 0, 0)
    write = MachineTimes(TOPOLOGY).of(TransferWork("write", PE, there, 4096))
    assert alone_ps(write) == closed_form_ps(TOPOLOGY, "dma-sip-1", "write", 4096)


def test_a_queue_changes_with_the_bandwidth_of_its_link():
    link = "cube0.ucie.E->cube1.ucie.W"
    before, after = MachineTimes(TOPOLOGY), with_number("cube.noc.link_bw_gbs", 512)
    work = QueueWork("cube0.router.r0c0->cube0.router.r0c1")
    assert after.of(work).bytes_ps * 2 == before.of(work).bytes_ps
    assert with_number("ucie.bw_gbs", 256).of(QueueWork(link)).bytes_ps == Fraction(1000, 256)


def test_the_margin_of_a_launch_is_part_of_its_time():
    launch, pes = LaunchWork(((0, 0),)), with_number("sip.io_chiplet.io_cpu.launch_margin_ns", 20)
    before = MachineTimes(TOPOLOGY)
    assert before.of(launch).fixed_ps - pes.of(launch).fixed_ps == 30_000
    # docs/internals/rules.md: a period of 305.6 ns with a kernel of 33.4 ns: 157.0 + 33.4 + 115.2.
    assert before.of(launch).fixed_ps == pytest.approx(157_000, abs=300)
    report = before.of(LaunchReportWork((0, 0), to_host=False))
    assert report.fixed_ps == pytest.approx(115_200, abs=300)


def rate(fixed_ps: int, vector_ps: int) -> WorkTime:
    """The time of a vector for each of its 128 lanes."""
    return WorkTime(fixed_ps, Fraction(vector_ps, 128), is_rate=True)


def test_issue_and_vectors_have_the_numbers_of_the_file():
    times = MachineTimes(TOPOLOGY)
    assert times.of(IssueWork(translated=False)).fixed_ps == 3000
    # exp: 8 cycles at 1 GHz for 128 lanes; add: two operands of 512 B at 512 GB/s, 2 ns.
    assert times.of(VectorsWork("exp")) == rate(4000, 8000)
    assert times.of(VectorsWork("add")) == rate(4000, 2000)


def test_reductions_scans_and_passes_have_the_tree_over_the_lanes():
    times = MachineTimes(TOPOLOGY)
    # Seven levels over 128 lanes, of 1 cycle each: behind the last vector, or in every one.
    assert times.of(VectorsWork("max")) == rate(4000 + 7000, 1000)
    assert times.of(VectorsWork("cumsum")) == rate(4000, 7000 + 1000)
    # max; exp, sum, and a quotient behind the tree; exp and mul: 1 + 9 + 9 cycles of a vector.
    division = TOPOLOGY.values()["pe"]["math"]["cycles"]["div"]
    fixed_ps = 3 * 4000 + 2 * 7000 + 1000 * division
    assert times.of(VectorsWork("softmax")) == rate(fixed_ps, 19_000)


@pytest.mark.parametrize(
    ("length_ps", "changed_ps"),
    [
        (150, 10 + 50),  # alone: 50 fixed and 100 for bytes; now 10 and 50
        (250, 10 + 100),  # 100 more of other transfers, which take half as long
        (75, 30),  # half of it hidden
    ],
)
def test_a_piece_changes_by_its_fixed_time_and_by_that_for_bytes(length_ps: int, changed_ps: int):
    before, after = WorkTime(50, Fraction(100)), WorkTime(10, Fraction(50))
    assert length_ps + before.change_ps(after, length_ps) == changed_ps


def test_work_without_time_changes_nothing():
    assert WorkTime(0, Fraction(0)).change_ps(WorkTime(5, Fraction(5)), 77) == 0


@pytest.mark.parametrize(
    ("fixed_ps", "length_ps", "changed_ps"),
    [
        # 100 + 40 ps alone, and a wait of 30 ps: it absorbs 30 of the 50 ps by which it comes
        # earlier or later, or all of 20.
        (50, 170, 150),
        (150, 170, 190),
        (80, 170, 170),
        (120, 170, 170),
        # Nothing waited.
        (50, 140, 90),
        (150, 140, 190),
    ],
)
def test_a_wait_absorbs_a_change_of_the_fixed_time(fixed_ps: int, length_ps: int, changed_ps: int):
    before, after = WorkTime(100, Fraction(40)), WorkTime(fixed_ps, Fraction(40))
    assert length_ps + before.change_ps(after, length_ps, is_absorbed=True) == changed_ps


def test_a_wait_of_half_the_bytes_absorbs_half():
    before, after = WorkTime(100, Fraction(40)), WorkTime(50, Fraction(20))
    # 40 + 30 ps of bytes and waits become 35, of which 15 ps are the wait.
    assert before.change_ps(after, 170, is_absorbed=True) == 100 - (50 - 15) + 35 - 170


@pytest.mark.parametrize(
    ("length_ps", "after", "changed_ps"),
    [
        # Twice the bandwidth of the host: half of the time, while its own way takes no longer.
        (800, WorkTime(100, Fraction(200), Fraction(400)), 400),
        (800, WorkTime(100, Fraction(200), Fraction(100)), 300),
        # Half the latency of its own way, which its data does not wait for.
        (800, WorkTime(50, Fraction(200), Fraction(800)), 800),
        # Its data had come: its own way alone.
        (300, WorkTime(50, Fraction(200), Fraction(400)), 250),
    ],
)
def test_a_copy_behind_another_takes_the_longer_of_its_data_and_its_own_way(
    length_ps: int, after: WorkTime, changed_ps: int
):
    before = WorkTime(100, Fraction(200), Fraction(800))
    assert length_ps + before.change_ps(after, length_ps) == changed_ps


def test_the_data_of_a_held_copy_comes_at_the_rate_of_the_host():
    memory = RouteEnd("hbm", 0, 0, 0)
    copy = HostCopyWork(memory=memory, nbytes=65_536, is_read=False, is_held=True, to_host=False)
    times = MachineTimes(TOPOLOGY).of(copy)
    # 64 GB/s of PCIe, behind which everything has 128.
    assert (times.arriving_ps, times.bytes_ps) == (1_024_000, 512_000)


def test_elements_of_an_engine_are_no_wait():
    before, after = rate(4000, 1000), rate(2000, 1000)
    # 10 ns of elements behind 4 ns of fill, which takes half as long.
    assert before.change_ps(after, 14_000) == -2000
    assert before.change_ps(after, 14_000, is_absorbed=True) == -2000


def test_a_wait_for_a_tile_changes_with_its_bytes_and_not_with_its_latency():
    transfer = TransferWork("read", RouteEnd("hbm", 0, 0, 0), PE, 4096)
    before, slower = MachineTimes(TOPOLOGY), with_number("hbm.pc_bw_gbs", 16)
    later = with_number("cube.hbm_ctrl.latency_ns", 520)
    wait = OperandWork(transfer)
    # Half the bandwidth of the slice: twice the time of the wait.
    assert before.of(wait).change_ps(slower.of(wait), 1000) == 1000
    assert before.of(wait).change_ps(later.of(wait), 1000) == 0
