"""Group l: the path of a launch from the host to the PEs and back, and overheads of the host."""

from collections.abc import Callable, Iterator, Sequence
from math import ceil

from kernbench.oracle.checks.check import Check
from kernbench.oracle.checks.launches.launch_runs import LaunchCases, launch
from kernbench.oracle.checks.transfers.accesses import Accesses, Bank
from kernbench.oracle.theory.kernels.launches import (
    IO_NOC_GBS,
    MARGIN_NS,
    LateLaunch,
    LaunchTimes,
    PeOfSip,
)
from kernbench.oracle.theory.paths.routes import M_CPU_GBS, MESH_GBS, PE_GBS, UCIE_GBS
from kernbench.oracle.theory.topology_file import TopologyFile
from runtime.core.device import Device, Handle
from runtime.core.requests import MemoryReadMsg, MemoryWriteMsg, PerPe
from runtime.model.addresses import AddressMap
from runtime.model.topology import parse_topology

COPY_BYTES = 4096
LONGER_PS = 500_000
"""Excess of the kernel of one PE over the others, so that its report meets no other report."""
MANY_ARGUMENTS = 8000
"""Arguments of a launch of 64 KB, which occupies each link of its route for hundreds of ns."""


def launch_paths(file: TopologyFile, prefix: str = "l.0", title: str = "the file") -> list[Check]:
    """Paths of launches on one topology, with ids that start with `prefix`."""
    cases = _PathCases(file, prefix, title)
    return [*cases.starts(), *cases.late_cubes(), *cases.late_pes(), *cases.overheads()]


class _PathCases(LaunchCases):
    """The checks of one topology, each a fresh run of SIP 0."""

    def __init__(self, file: TopologyFile, prefix: str, title: str) -> None:
        super().__init__(file, prefix, title)
        self._cubes, self._pes = range(file.cubes), range(file.pes_per_cube)

    def starts(self) -> Iterator[Check]:
        """One launch on one PE, on the PEs of a cube, on all PEs: start, end, and common start."""
        cube = self._cubes[-1] // 2
        sets = {
            "one": ([(0, self._pes[-1])], 0),
            "cube": ([(cube, pe) for pe in self._pes], 0),
            "sip": ([(each, pe) for each in self._cubes for pe in self._pes], -1),
        }
        apart_ps = 0
        for arguments, (name, (pes, last)) in enumerate(sets.items(), start=1):
            longer = ceil(LONGER_PS / self._add_ps)
            adds = PerPe(dict.fromkeys(pes, 0) | {pes[last]: longer})
            run = self._run(
                lambda _, targets=pes, n=adds, a=arguments: [
                    launch(n, targets, name="k", arguments=a)
                ]
            )
            times = LaunchTimes(self._file, pes, arguments, reporting=pes[last])
            starts_ps = run.starts_ps("k").values()
            apart_ps = max(apart_ps, max(starts_ps) - min(starts_ps))
            extent = {"one": "the last PE of cube 0", "cube": f"cube {cube}", "sip": "all PEs"}[
                name
            ]
            yield self._check(
                f"start.{name}",
                f"submission to start, {extent}, arguments: {arguments}",
                "to IO_CPU + bytes + longest route + margin",
                times.start_ps,
                max(starts_ps),
            )
            kernel_ps = self._fill_ps + longer * self._add_ps
            yield self._check(
                f"start.{name}.kernel",
                f"the kernel on {extent}",
                "from the common start to the end on the PE that ends last",
                kernel_ps,
                run.handles[0].pe_exec_ps,
            )
            yield self._check(
                f"start.{name}.answer",
                f"end of the kernel on {extent} to the answer",
                "report of the last PE to M_CPU and IO_CPU + answer",
                times.report_ps + times.answer_ps,
                run.handles[0].completed_ps - times.start_ps - kernel_ps,
            )
        text = "first to last start over the PEs of each of these launches"
        yield self._check("start.together", text, "0: the IO_CPU stamps one time", 0, apart_ps)
        yield from self._covered(sets["sip"][0])

    def _covered(self, pes: Sequence[PeOfSip]) -> Iterator[Check]:
        """A launch on an idle chip needs no margin: no PE receives its command too late."""
        file = self._file.with_values({MARGIN_NS: 0})
        run = self._run(lambda _: [launch(0, pes, name="k")], {MARGIN_NS: 0})
        yield self._check(
            "start.covered",
            "submission to the last start, all PEs, launch_margin_ns 0",
            "to IO_CPU + bytes + longest route",
            LaunchTimes(file, pes, 1).start_ps,
            max(run.starts_ps("k").values()),
        )

    def late_cubes(self) -> Iterator[Check]:
        """A launch on cubes behind a large one: the IO_CPU sends in the order of the cubes."""
        gbs = self._file.number
        # On a link that is narrower than the first one, the commands would wait once more.
        narrow = min(gbs(UCIE_GBS), gbs(MESH_GBS)) < gbs(IO_NOC_GBS)
        if narrow or min(gbs(PE_GBS), gbs(MESH_GBS)) < gbs(M_CPU_GBS) or len(self._cubes) < 3:
            return
        cubes, pes = self._cubes[:2], self._pes[:2]
        expected = LateLaunch(self._file, MANY_ARGUMENTS).on_cubes(cubes, pes)
        on_pes = [(cube, pe) for cube in cubes for pe in pes]
        starts_ps = self._late((self._cubes[-1], 0), on_pes)
        for cube, expected_ps in zip(cubes, expected, strict=True):
            yield self._check(
                f"late.cube{cube}",
                f"start on cube {cube} behind {MANY_ARGUMENTS} arguments for another, no margin",
                "bytes before it, in the order of the cubes, + route",
                expected_ps,
                starts_ps[cube, pes[-1]],
            )

    def late_pes(self) -> Iterator[Check]:
        """A launch on PEs behind a large one: the M_CPU sends in the order of the PEs."""
        gbs = self._file.number
        if min(gbs(PE_GBS), gbs(MESH_GBS)) < gbs(M_CPU_GBS) or len(self._pes) < 3:
            return
        cube, (*pes, last) = self._cubes[-1], self._pes
        expected = LateLaunch(self._file, MANY_ARGUMENTS).on_pes(cube, pes)
        starts_ps = self._late((cube, last), [(cube, pe) for pe in pes])
        # The first and the last one: with another order, one of them is sent at another time.
        for pe, expected_ps in ((pes[0], expected[0]), (pes[-1], expected[-1])):
            yield self._check(
                f"late.pe{pe}",
                f"start on PE {pe} behind {MANY_ARGUMENTS} arguments for another, no margin",
                "bytes before it, in the order of the PEs, + route",
                expected_ps,
                starts_ps[cube, pe],
            )

    def overheads(self) -> Iterator[Check]:
        """A write, a read, a launch and an event at once: each waits for those before it."""
        accesses = Accesses(self._file)
        bank = Bank("hbm", 0, self._cubes[-1], 0)
        launch = LaunchTimes(self._file, [(0, 0)], 1)
        launch_ps, copy_ps = 40_000_000, 70_000_000
        changes = {"host.launch_overhead_ns": launch_ps / 1000}
        changes["host.copy_overhead_ns"] = copy_ps / 1000
        write_ps, read_ps = (
            accesses.host(bank, COPY_BYTES, reads=reads).expected_ps for reads in (False, True)
        )
        alone_ps = {
            "write": (copy_ps, write_ps),
            "read": (copy_ps, read_ps),
            "launch": (launch_ps, launch.start_ps + self._fill_ps + launch.report_ps),
            "event": (launch_ps, LaunchTimes(self._file, [(0, 0)]).event_ps),
        }
        run = self._run(self._of_each_kind(bank), changes)
        sent_ps = 0
        for (kind, (overhead_ps, own_ps)), handle in zip(
            alone_ps.items(), run.handles, strict=True
        ):
            sent_ps += overhead_ps
            answer_ps = launch.answer_ps if kind == "launch" else 0
            yield self._check(
                f"overhead.{kind}",
                f"{kind} behind those before it, overheads 70 us a copy and 40 us a launch",
                "overheads up to its own + its time alone",
                sent_ps + own_ps + answer_ps,
                handle.completed_ps,
            )

    def _of_each_kind(self, bank: Bank) -> Callable[[Device], list[Handle]]:
        addresses = AddressMap(parse_topology(self._file.text, "topology", 1))
        address = addresses.pe_hbm_addr(0, bank.cube, bank.pe, 0)

        def program(device: Device) -> list[Handle]:
            return [
                device.submit([MemoryWriteMsg(address, COPY_BYTES, b"")], "the write"),
                device.submit([MemoryReadMsg(address, COPY_BYTES)], "the read"),
                launch(0, [(0, 0)]),
                device.submit([], "the event"),
            ]

        return program

    def _late(self, large: PeOfSip, pes: Sequence[PeOfSip]) -> dict[PeOfSip, int]:
        """The starts of a launch on `pes` behind a large one on another PE, without a margin."""

        def program(device: Device) -> list[Handle]:
            first = launch(0, [large], name="large", arguments=MANY_ARGUMENTS)
            return [first, launch(0, pes, name="late", stream=device.new_stream())]

        return self._run(program, {MARGIN_NS: 0}).starts_ps("late")
