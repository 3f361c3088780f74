"""Single accesses on an idle system: the simulated time of each beside its closed form."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np

from kernbench import torch
from kernbench.oracle.theory.paths.memory_access import MemoryAccess
from kernbench.oracle.theory.paths.routes import SRAM_GBS, TCM_GBS, RouteEnd
from kernbench.oracle.theory.topology_file import TopologyFile
from kernbench.simulation import simulate
from runtime.core import dtypes
from runtime.core.config.config_file import default_file, read_text
from runtime.core.config.plain_yaml import from_yaml, to_yaml
from runtime.core.requests import MemoryReadMsg, MemoryWriteMsg, PeDmaMsg, Request
from runtime.core.rng import Random
from runtime.core.trace import OpRecord
from runtime.device.launches.launch import launch_on
from runtime.device.rank.rank_state import running_rank
from runtime.language import tl
from runtime.language.value import Value
from runtime.model.addresses import AddressMap
from runtime.model.topology import parse_topology

CREDIT_BYTES = 16
SLOT_BYTES = 8192
"""Slot size of the queue pairs of this module; a message is at most one slot."""

VERBS = {True: "reads", False: "writes"}

PeOfSip = tuple[int, int]
"""Cube and PE."""
CubeOfSystem = tuple[int, int]
"""SIP and cube."""


@dataclass(frozen=True)
class Bank:
    """A memory of kind `hbm`, `sram` or `tcm`; `pe` is -1 for an SRAM, which belongs to a cube."""

    kind: str
    sip: int
    cube: int
    pe: int = -1

    @property
    def end(self) -> RouteEnd:
        """The end of the routes to it."""
        match self.kind:
            case "hbm" | "sram":
                return RouteEnd(self.kind, self.sip, self.cube, self.pe)
            case _:
                return RouteEnd("pe", self.sip, self.cube, self.pe)

    def __str__(self) -> str:
        owner = "" if self.pe < 0 else f".pe{self.pe}"
        return f"{self.kind} of sip{self.sip}.cube{self.cube}{owner}"


@dataclass(frozen=True)
class TimedAccess:
    """An access in words, its time by the closed form and its simulated time."""

    what: str
    expected_ps: int
    measured_ps: int


class Accesses:
    """Accesses on one topology, each in a fresh system."""

    def __init__(self, file: TopologyFile) -> None:
        self.file, self._access = file, MemoryAccess(file)
        self.times = self._access.times
        self.sips = int(file["system.sips.count"])
        self._addresses = AddressMap(parse_topology(file.text, "topology", self.sips))

    def draw_bank(self, rng: Random, pe: PeOfSip) -> Bank:
        """A random memory of the system, HBM in half of the cases.

        Never the TCM of `pe` itself: its DMA has no route to it. Then it is the own HBM slice.
        """
        kind = rng.choice(("hbm", "hbm", "sram", "tcm"))
        sip, cube = rng.randrange(self.sips), rng.randrange(self.file.cubes)
        if kind == "sram":
            return Bank(kind, sip, cube)
        bank = Bank(kind, sip, cube, rng.randrange(self.file.pes_per_cube))
        return Bank("hbm", 0, *pe) if bank == Bank("tcm", 0, *pe) else bank

    def host(self, bank: Bank, nbytes: int, *, reads: bool) -> TimedAccess:
        """A write or read by the host of SIP 0, to a memory of SIP 0."""
        address = self._address(bank)
        request = MemoryReadMsg(address, nbytes) if reads else MemoryWriteMsg(address, nbytes, b"")
        return TimedAccess(
            f"host {VERBS[reads]} {nbytes} B, {bank}",
            self._expected_ps(RouteEnd("host"), bank, nbytes, reads=reads),
            self._record_ps(request, "host"),
        )

    def dma(self, pe: PeOfSip, bank: Bank, nbytes: int, *, reads: bool) -> TimedAccess:
        """A read or write by the DMA of a PE of SIP 0, to any memory."""
        request = PeDmaMsg(*pe, "read" if reads else "write", self._address(bank), nbytes)
        return TimedAccess(
            f"cube{pe[0]}.pe{pe[1]} {VERBS[reads]} {nbytes} B, {bank}",
            self._expected_ps(RouteEnd("pe", 0, *pe), bank, nbytes, reads=reads),
            self._record_ps(request, "pe_dma"),
        )

    def dma_latency_ps(self, pe: PeOfSip, bank: Bank) -> int:
        """Time of a read without its bytes: DMA, request, and the route of the first byte back."""
        return self._access.read(RouteEnd("pe", 0, *pe), bank.end, 1).latency_ps

    def sends(self, nbytes: int, kind: str, packet_bytes: int) -> Iterator[TimedAccess]:
        """One message over each kind of queue pair: to the cubes east and south, the next SIP."""
        width, last = self.file["sip.cube_mesh.w"], self.file.cubes - 1
        pairs = (
            (width > 1, (0, 0), (0, 1), ("E", "W")),
            (self.file.cubes > width, (0, 0), (0, width), ("S", "N")),
            (self.sips > 1, (0, last), (1, last), ("global_E", "global_W")),
        )
        for exists, source, target, directions in pairs:
            if exists:
                yield self._send(source, target, directions, nbytes, kind, packet_bytes)

    def _send(
        self,
        source: CubeOfSystem,
        target: CubeOfSystem,
        directions: tuple[str, str],
        nbytes: int,
        kind: str,
        packet_bytes: int,
    ) -> TimedAccess:
        ccl = joined(kind, packet_bytes)
        # The message is one slot, so the first arrival is the whole of it.
        arrival = self.arrivals(source, target, directions, nbytes, ccl)[0]
        cube = f"sip{source[0]}.cube{source[1]}"
        return TimedAccess(
            f"{nbytes} B, {directions[0]} from {cube} to a ring in {kind}",
            self.slot_ps(source, target, nbytes, kind, packet_bytes),
            arrival.end_ps - arrival.start_ps,
        )

    def arrivals(
        self,
        source: CubeOfSystem,
        target: CubeOfSystem,
        directions: tuple[str, str],
        nbytes: int,
        ccl: str,
    ) -> list[OpRecord]:
        """Send one message from PE 0 of a cube to PE 0 of another, in the first of `directions`.

        Returns the arrivals of its slots, in order of time, then that of the answer.
        """
        out, back = directions

        def kernel(rank: int) -> None:
            pe = (rank, tl.program_id(1))
            if pe == source:
                # The completion message of this kernel would share links with the last bytes of its
                # message, so both kernels end only after the answer.
                tl.send(out, _message(nbytes))
                tl.recv(out, 1, dtypes.int8)
            elif pe == target:
                tl.recv(back, nbytes, dtypes.int8)
                tl.send(back, _message(1))

        def program(rank: int) -> None:
            torch.distributed.init_process_group("ahbm")
            # Launched on the two cubes only: a kernel that ends at once would send its completion
            # through the mesh during the measurement.
            pes = [(cube, 0) for cube in sorted({source[1], target[1]})]
            launch_on("transfer", kernel, (rank,), [], pes)
            torch.ahbm.synchronize()

        world = simulate(program, self.sips, topology=self.file.text, ccl=ccl, data=False)
        records = [record for _, record in world.of("pe_ipcq", "arrival")]
        return sorted(records, key=lambda record: record.end_ps)

    def slot_ps(
        self, source: CubeOfSystem, target: CubeOfSystem, nbytes: int, kind: str, packet_bytes: int
    ) -> int:
        """Closed form of a slot: its route to the ring, then that of the announcement to the PE."""
        plan, bank = self._access.plan, Bank(kind, *target, -1 if kind == "sram" else 0)
        route = plan.route(RouteEnd("pe", *source, 0), bank.end)
        if kind == "tcm":
            write_ps = self.times.ring_write_ps(route, nbytes, packet_bytes, TCM_GBS)
            return write_ps + self.times.announcement_ps(())
        write_ps = self.times.ring_write_ps(route, nbytes, packet_bytes, SRAM_GBS)
        to_pe = plan.route(bank.end, RouteEnd("pe", *target, 0))
        return write_ps + self.times.announcement_ps(to_pe)

    def _expected_ps(self, by: RouteEnd, bank: Bank, nbytes: int, *, reads: bool) -> int:
        """A request and its data, or data and their acknowledgement."""
        transfer = self._access.read if reads else self._access.write
        return transfer(by, bank.end, nbytes).total_ps

    def _address(self, bank: Bank) -> int:
        if bank.kind == "hbm":
            return self._addresses.pe_hbm_addr(bank.sip, bank.cube, bank.pe, 0)
        if bank.kind == "sram":
            return self._addresses.cube_sram_addr(bank.sip, bank.cube, 0)
        return self._addresses.pe_tcm_addr(bank.sip, bank.cube, bank.pe, 0)

    def _record_ps(self, request: Request, engine: str) -> int:
        def program(rank: int) -> None:
            if rank == 0:
                device = running_rank().device
                device.wait(device.submit([request], "one access"))

        world = simulate(program, self.sips, topology=self.file.text, data=False, remote_dma=True)
        [(_, record)] = world.of(engine)
        return record.end_ps - record.start_ps


def _message(nbytes: int) -> Value:
    return Value((nbytes,), dtypes.int8, np.zeros(nbytes, np.int8))


@cache
def joined(kind: str, packet_bytes: int, slots: int = 4) -> str:
    """`ccl.yaml` with queue pairs between PE 0 of neighbouring cubes, and of last cubes of SIPs."""
    content = from_yaml(read_text(default_file("ccl.yaml")))
    content["defaults"] |= {
        "algorithm": "intercube",
        "buffer_kind": kind,
        "vc_chunk_size": packet_bytes,
        "slot_size": SLOT_BYTES,
        "n_slots": slots,
        "ipcq_credit_size_bytes": CREDIT_BYTES,
    }
    content["algorithms"]["intercube"] |= {
        "root_cube": None,
        "mapper": "cube_leaders",
        "vc_chunk_size": packet_bytes,
    }
    return to_yaml(content)
