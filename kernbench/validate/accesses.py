"""Single accesses on an idle system: what the product takes for one, and what the closed form says."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import yaml

from kernbench.validate.closed_form import ClosedForm, Way
from kernbench.validate.variant import Variant
from kernbench.validate.ways import FloorPlan, Stem, pe_stem, slice_stem, sram_stem
from runtime import torch
from runtime.core import dtypes
from runtime.core.config_file import default_file, read_text
from runtime.core.requests import MemoryReadMsg, MemoryWriteMsg, PeDmaMsg, Request
from runtime.core.rng import Random
from runtime.core.trace import OpRecord
from runtime.language import tl
from runtime.language.value import Value
from runtime.model.addresses import AddressMap
from runtime.model.topology import parse_topology
from runtime.torch.ops import launch_on
from runtime.torch.rank_state import running_rank
from sip_node.local_run import simulate

TCM_GBS = "pe.tcm.bw_gbs"
"""Every DMA reads or writes the TCM of its own PE."""
CREDIT_BYTES = 16
SLOT_BYTES = 8192
"""Of the queue pairs joined here; a message is at most a slot."""


@dataclass(frozen=True)
class Bank:
    """A memory: `kind` is `hbm`, `sram` or `tcm`. `pe` is -1 for an SRAM."""

    kind: str
    sip: int
    cube: int
    pe: int = -1

    def __str__(self) -> str:
        owner = "" if self.pe < 0 else f".pe{self.pe}"
        return f"{self.kind} of sip{self.sip}.cube{self.cube}{owner}"


@dataclass(frozen=True)
class Timed:
    """One access: what it is, and its two times in ps."""

    what: str
    expected_ps: int
    measured_ps: int


class Accesses:
    """Accesses on one topology, each in a fresh system."""

    def __init__(self, file: Variant) -> None:
        self.file, self.form, self.plan = file, ClosedForm(file.text), FloorPlan(file)
        self.sips = int(file["system.sips.count"])
        self._addresses = AddressMap(parse_topology(file.text, "topology", self.sips))

    def draw_bank(self, rng: Random, place: tuple[int, int]) -> Bank:
        """Any memory of the system, HBM half of the time, but for the TCM of the PE at `place`: no way leads there."""
        kind = rng.choice(("hbm", "hbm", "sram", "tcm"))
        sip, cube = rng.randrange(self.sips), rng.randrange(self.file.cubes)
        bank = (
            Bank(kind, sip, cube)
            if kind == "sram"
            else Bank(kind, sip, cube, rng.randrange(self.file.pes_per_cube))
        )
        return Bank("hbm", 0, *place) if bank == Bank("tcm", 0, *place) else bank

    def host(self, bank: Bank, nbytes: int, *, reads: bool) -> Timed:
        """A write or read of the host of SIP 0 to a memory of its own SIP."""
        address = self._address(bank)
        request = MemoryReadMsg(address, nbytes) if reads else MemoryWriteMsg(address, nbytes, b"")
        (cube, (cell, _)), (stem_out, stem_in) = self._place(bank), self._stem(bank)
        there = self.plan.from_host(cube, cell) + stem_in
        back = stem_out + self.plan.to_host(cube, cell)
        verb = "reads" if reads else "writes"
        what = f"host {verb} {nbytes} B, {bank}"
        return Timed(
            what,
            self._exchange_ps(there, back, nbytes, bank, reads=reads),
            self._record_ps(request, "host"),
        )

    def dma(self, place: tuple[int, int], bank: Bank, nbytes: int, *, reads: bool) -> Timed:
        """A read or write of PE `(cube, pe)` of SIP 0 to any memory."""
        request = PeDmaMsg(*place, "read" if reads else "write", self._address(bank), nbytes)
        there, back = self._dma_ways(place, bank)
        expected_ps = self.form.ps("pe.dma.overhead_ns") + self._exchange_ps(
            there, back, nbytes, bank, TCM_GBS, reads=reads
        )
        verb = "reads" if reads else "writes"
        what = f"cube{place[0]}.pe{place[1]} {verb} {nbytes} B, {bank}"
        return Timed(what, expected_ps, self._record_ps(request, "pe_dma"))

    def dma_latency_ps(self, place: tuple[int, int], bank: Bank) -> int:
        """What a read costs beside its bytes: the DMA, the request, and the way of the first byte back."""
        there, back = self._dma_ways(place, bank)
        return (
            self.form.ps("pe.dma.overhead_ns")
            + self.form.control_ps(there)
            + self.form.latency_ps(back)
        )

    def sends(self, nbytes: int, kind: str, packet: int) -> Iterator[Timed]:
        """One message along each kind of queue pair: to the next cube in each direction, to the next SIP."""
        width = self.file["sip.cube_mesh.w"]
        if width > 1:
            yield self._send((0, 0), (0, 1), ("E", "W"), nbytes, kind, packet)
        if self.file.cubes > width:
            yield self._send((0, 0), (0, width), ("S", "N"), nbytes, kind, packet)
        if self.sips > 1:
            root = self.file.cubes - 1
            yield self._send((0, root), (1, root), ("global_E", "global_W"), nbytes, kind, packet)

    def _send(
        self,
        source: tuple[int, int],
        target: tuple[int, int],
        ways: tuple[str, str],
        nbytes: int,
        kind: str,
        packet: int,
    ) -> Timed:
        arrival = self.arrivals(source, target, ways, nbytes, joined(kind, packet))[0]
        what = f"{nbytes} B, {ways[0]} from sip{source[0]}.cube{source[1]} to a ring in {kind}"
        return Timed(
            what,
            self.slot_ps(source, target, nbytes, kind, packet),
            arrival.end_ps - arrival.start_ps,
        )

    def arrivals(
        self,
        source: tuple[int, int],
        target: tuple[int, int],
        ways: tuple[str, str],
        nbytes: int,
        ccl: str,
    ) -> list[OpRecord]:
        """Send one message from PE 0 of `(sip, cube)` to another over joined queues: the arrivals of its slots, then others."""
        out, back = ways

        def kernel(rank: int) -> None:
            at = (rank, tl.program_id(1))
            if at == source:
                # The completion of a kernel would cross the way of its own last bytes, so both wait for an answer.
                tl.send(out, _message(nbytes))
                tl.recv(out, 1, dtypes.int8)
            elif at == target:
                tl.recv(back, nbytes, dtypes.int8)
                tl.send(back, _message(1))

        def program(rank: int) -> None:
            torch.distributed.init_process_group("ahbm")
            # Only where something happens: a kernel that ends at once answers through the mesh that is measured.
            launch_on(
                "transfer",
                kernel,
                (rank,),
                [],
                [(cube, 0) for cube in sorted({source[1], target[1]})],
            )
            torch.ahbm.synchronize()

        world = simulate(program, self.sips, topology=self.file.text, ccl=ccl, data=False)
        return sorted(
            (record for _, record in world.of("pe_ipcq", "arrival")),
            key=lambda record: record.end_ps,
        )

    def slot_ps(
        self, source: tuple[int, int], target: tuple[int, int], nbytes: int, kind: str, packet: int
    ) -> int:
        """The closed form of a slot: its way to the ring, and the announcement's way to the PE that owns it."""
        pe, bank = (
            self.plan.cube.pe(0),
            Bank(kind, target[0], target[1], -1 if kind == "sram" else 0),
        )
        sips = abs(target[0] - source[0])
        way = (
            pe_stem(pe)[0]
            + self.plan.between((source[1], pe), self._place(bank), sips)
            + self._stem(bank)[1]
        )
        if kind == "tcm":
            return self.form.ring_write_ps(
                way, nbytes, packet, TCM_GBS
            ) + self.form.announcement_ps(())
        write_ps = self.form.ring_write_ps(way, nbytes, packet, "cube.sram_to_router_bw_gbs")
        home = (
            self._stem(bank)[0]
            + self.plan.between(self._place(bank), (target[1], pe))
            + pe_stem(pe)[1]
        )
        return write_ps + self.form.announcement_ps(home)

    def _dma_ways(self, place: tuple[int, int], bank: Bank) -> tuple[Way, Way]:
        cube, pe = place
        if bank == Bank("hbm", 0, cube, pe):
            return self.plan.own_slice()
        at = self.plan.cube.pe(pe)
        (out, into), (bank_out, bank_in) = pe_stem(at), self._stem(bank)
        there = (
            out
            + self.plan.between((cube, at), self._place(bank), self._crossings(bank.sip))
            + bank_in
        )
        back = (
            bank_out
            + self.plan.between(self._place(bank), (cube, at), self._crossings(bank.sip))
            + into
        )
        return there, back

    def _crossings(self, sip: int) -> int:
        """Crossings from SIP 0: the shortest way round the ring, one through a switch."""
        if self.file["system.sips.fabric"] == "switch":
            return min(sip, 1)
        return min(sip, self.sips - sip)

    def _exchange_ps(
        self, there: Way, back: Way, nbytes: int, bank: Bank, *ports: str, reads: bool
    ) -> int:
        """A request and its data, or data and its acknowledgement."""
        ports = (*ports, TCM_GBS) if bank.kind == "tcm" else ports
        if reads:
            return self.form.control_ps(there) + self.form.bulk_ps(back, nbytes, *ports)
        return self.form.bulk_ps(there, nbytes, *ports) + self.form.control_ps(back)

    def _place(self, bank: Bank) -> tuple[int, Stem]:
        return bank.cube, self.plan.cube.sram() if bank.kind == "sram" else self.plan.cube.pe(
            bank.pe
        )

    def _stem(self, bank: Bank) -> tuple[Way, Way]:
        if bank.kind == "hbm":
            return slice_stem()
        return (
            sram_stem(self.plan.cube.sram())
            if bank.kind == "sram"
            else pe_stem(self.plan.cube.pe(bank.pe))
        )

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


def joined(kind: str, packet: int, slots: int = 4) -> str:
    """Queue pairs between PE 0 of neighbouring cubes, and between the last cubes of SIPs."""
    content = yaml.safe_load(read_text(default_file("ccl.yaml")))
    content["defaults"] |= {
        "algorithm": "intercube",
        "buffer_kind": kind,
        "vc_chunk_size": packet,
        "slot_size": SLOT_BYTES,
        "n_slots": slots,
        "ipcq_credit_size_bytes": CREDIT_BYTES,
    }
    content["algorithms"]["intercube"] |= {"root_cube": None, "mapper": "cube_leaders"}
    return yaml.safe_dump(content)
