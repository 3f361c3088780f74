"""Group l: commands on streams. Launches follow each other by a closed form, and overlap copies."""

from collections.abc import Iterator

from kernbench.oracle.checks.check import Check
from kernbench.oracle.checks.launches.launch_runs import HostProgram, LaunchCases, launch
from kernbench.oracle.checks.transfers.accesses import Accesses, Bank
from kernbench.oracle.theory.kernels.launches import IO_NOC_GBS, LaunchTimes
from kernbench.oracle.theory.paths.routes import HOST_TO_IO
from kernbench.oracle.theory.topology_file import TopologyFile
from runtime.core.device import Device, Handle
from runtime.core.requests import MemoryWriteMsg
from runtime.model.addresses import AddressMap
from runtime.model.topology import parse_topology

LAUNCHES = 6
COPY_BYTES = 32768


def launches(file: TopologyFile, prefix: str = "l.0", title: str = "the file") -> list[Check]:
    """Launches on one topology, with ids that start with `prefix`."""
    cases = _Cases(file, prefix, title)
    return [*cases.streams(), *cases.host_bound(), *cases.beside(), *cases.copies()]


class _Cases(LaunchCases):
    """The checks of one topology, each a fresh run of SIP 0."""

    def streams(self) -> Iterator[Check]:
        """N launches on one stream, on the first and on the last PE of a SIP."""
        last = self._file.cubes - 1, self._file.pes_per_cube - 1
        for name, pe in (("first", (0, 0)), ("last", last)):
            times = LaunchTimes(self._file, [pe], arguments=1)
            yield self._check(
                f"stream.{name}",
                f"{LAUNCHES} launches on one stream, {name} PE",
                "to IO_CPU + N (margin + longest route + kernel + report) + answer",
                times.stream_ps(LAUNCHES, self._kernel_ps(1)),
                self._took_ps(lambda _, target=pe: [launch(1, [target]) for _ in range(LAUNCHES)]),
            )

    def host_bound(self) -> Iterator[Check]:
        """N launches of a host that needs two periods for each."""
        times, kernel_ps = LaunchTimes(self._file, [(0, 0)], arguments=1), self._kernel_ps(1)
        overhead_ps = 2 * times.period_ps(kernel_ps)
        changes = {"host.launch_overhead_ns": overhead_ps / 1000}
        yield self._check(
            "host",
            f"{LAUNCHES} launches, launch_overhead_ns of two periods",
            "N overhead + one launch",
            times.host_bound_ps(LAUNCHES, kernel_ps, overhead_ps),
            self._took_ps(lambda _: [launch(1, [(0, 0)]) for _ in range(LAUNCHES)], changes),
        )

    def beside(self) -> Iterator[Check]:
        """N launches on each of two streams, on PEs of two cubes at the same distance."""
        file = self._file
        width, height = file["sip.cube_mesh.w"], file["sip.cube_mesh.h"]
        along_row = file["sip.io_chiplet.edge"] in "NS"
        other = 1 if along_row else width
        times = LaunchTimes(file, [(0, 0)], arguments=1)
        link = times.times.narrowest_gbs(HOST_TO_IO[:2])
        # On a link that is narrower than that to the host, the streams would wait for each other.
        if (width if along_row else height) < 2 or file.number(IO_NOC_GBS) < link:
            return

        def program(device: Device) -> list[Handle]:
            second = device.new_stream()
            return [
                handle
                for _ in range(LAUNCHES)
                for handle in (launch(1, [(0, 0)]), launch(1, [(other, 0)], stream=second))
            ]

        yield self._check(
            "beside",
            f"{LAUNCHES} launches on each of two streams, PEs of two cubes",
            "one stream + the second launch on the link from the host",
            times.stream_ps(LAUNCHES, self._kernel_ps(1)) + times.launch_link_ps,
            self._took_ps(program),
        )

    def copies(self) -> Iterator[Check]:
        """A copy of the host while a kernel runs: each takes the time that it takes alone."""
        bank = Bank("hbm", 0, self._file.cubes - 1, 0)
        alone = Accesses(self._file).host(bank, COPY_BYTES, reads=False).expected_ps
        times = LaunchTimes(self._file, [(0, 0)], arguments=1)
        # The copy starts two round trips of a control packet after the launch, then it is over.
        adds = 2 * (alone + times.to_io_ps + times.answer_ps) // self._add_ps
        whole = self._file["packet_bytes"] % (
            self._file["hbm.burst_bytes"] * self._file["hbm.num_pcs"]
        )
        if whole:
            return
        addresses = AddressMap(parse_topology(self._file.text, "topology", 1))
        address = addresses.pe_hbm_addr(0, bank.cube, bank.pe, 0)
        totals_ps: list[int] = []

        def program(device: Device) -> list[Handle]:
            handle = launch(adds, [(0, 0)])
            device.stream = device.new_stream()
            for _ in range(2):
                device.wait(device.submit([], "a round trip"))
            copy = device.submit([MemoryWriteMsg(address, COPY_BYTES, b"")], "the copy")
            totals_ps.append(device.wait(copy).total_ps)
            return [handle]

        took_ps = self._took_ps(program)
        text = f"{COPY_BYTES >> 10} KiB of the host to the last cube while a kernel runs"
        yield self._check("copy", f"{text}: the copy", "as in group a", alone, totals_ps[0])
        expected_ps = times.stream_ps(1, self._kernel_ps(adds))
        yield self._check("copied", f"{text}: the kernel", "one launch", expected_ps, took_ps)

    def _kernel_ps(self, adds: int) -> int:
        return self._fill_ps + adds * self._add_ps

    def _took_ps(self, program: HostProgram, changes: dict[str, float] | None = None) -> int:
        """Time from the start of the run to the answer of the last of the handles."""
        return self._run(program, changes).completed_ps
