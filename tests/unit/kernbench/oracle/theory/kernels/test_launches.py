"""The closed forms of launches, by hand on the file that ships."""

from kernbench.oracle.theory.kernels.launches import LateLaunch, LaunchTimes, submission_ps
from kernbench.oracle.theory.topology_file import TopologyFile
from tests.support.topologies import default_text

FILE = TopologyFile.of(default_text()).on_a_ring(1)


def test_a_launch_reaches_the_io_cpu_as_a_whole_packet_over_pcie():
    # 100 + 10 ns of overheads, and 64 B + 8 B an argument at 64 GB/s.
    assert LaunchTimes(FILE, [(0, 0)], arguments=1).to_io_ps == 110_000 + 72_000 // 64
    assert LaunchTimes(FILE, [(0, 0)], arguments=3).to_io_ps == 110_000 + 88_000 // 64


def test_an_answer_pays_the_pcie_endpoint_and_16_bytes():
    assert LaunchTimes(FILE, [(0, 0)]).answer_ps == 100_000 + 16_000 // 64


def test_a_period_contains_the_kernel_once_and_the_host_not_at_all():
    times = LaunchTimes(FILE, [(0, 0)])
    assert times.period_ps(1234) - times.period_ps(0) == 1234
    assert times.stream_ps(7, 500) - times.stream_ps(6, 500) == times.period_ps(500)
    slow_host = LaunchTimes(FILE.with_values({"sip.io_chiplet.pcie_ep.overhead_ns": 900}), [(0, 0)])
    assert slow_host.period_ps(0) == times.period_ps(0)


def test_a_host_that_is_the_bottleneck_pays_its_overhead_for_each_launch():
    times = LaunchTimes(FILE, [(0, 0)])
    more, fewer = (times.host_bound_ps(count, 0, 5_000_000) for count in (9, 8))
    assert more - fewer == 5_000_000


def test_the_stamp_has_the_margin_and_grows_with_the_distance():
    no_margin = FILE.with_values({"sip.io_chiplet.io_cpu.launch_margin_ns": 0})
    near = LaunchTimes(FILE, [(FILE.cubes - 1, 0)])
    assert near.stamp_ps - LaunchTimes(no_margin, [(FILE.cubes - 1, 0)]).stamp_ps == 50_000
    assert near.stamp_ps < LaunchTimes(FILE, [(0, 0)]).stamp_ps


def test_the_stamp_serialises_the_commands_of_all_cubes_and_those_of_a_cube_again():
    def stamp_ps(cubes: range, pes: range) -> int:
        return LaunchTimes(FILE, [(cube, pe) for cube in cubes for pe in pes]).stamp_ps

    # 64 B at 64 GB/s, the links of the M_CPU: 1 ns a command, on the way to it and behind it. PE 2
    # of cube 0 is the farthest one.
    one, cube, sip = range(1), range(8), range(FILE.cubes)
    assert stamp_ps(one, cube) == stamp_ps(one, range(2, 3)) + 2 * 7_000
    assert stamp_ps(sip, cube) == stamp_ps(one, cube) + 15 * 8_000


def test_commands_behind_a_large_one_follow_each_other_at_the_rate_of_the_first_link():
    late = LateLaunch(FILE, 8000, 0)
    # 2 x 64 B at 128 GB/s to the IO NoC; both cubes are in the row that is the farthest.
    first, second = late.on_cubes([0, 1], [0, 1])
    assert second - first == 1_000
    # 64 B at 64 GB/s from the M_CPU; PE 6 is a router and 2 mm farther than PE 4.
    first, second = late.on_pes(0, [4, 6])
    assert second - first == 1_000 + 1_000 + 20


def test_a_copy_takes_the_time_of_a_launch_unless_it_has_its_own():
    slow = FILE.with_values({"host.launch_overhead_ns": 7.0, "host.copy_overhead_ns": None})
    assert [submission_ps(slow, copies=copies) for copies in (False, True)] == [7000, 7000]
    own = slow.with_values({"host.copy_overhead_ns": 0.0})
    assert [submission_ps(own, copies=copies) for copies in (False, True)] == [7000, 0]
    silent = TopologyFile({**FILE.content, "host": {"overhead_ns": 0.0}})
    assert submission_ps(silent, copies=True) == 0
