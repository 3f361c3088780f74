"""Groups a and b: single accesses on an idle system, and one long DMA stream."""

from collections.abc import Iterator

from kernbench.oracle.checks.check import Check
from kernbench.oracle.checks.transfers.accesses import SLOT_BYTES, Accesses, Bank, TimedAccess
from kernbench.oracle.theory.bandwidths import own_read_gbs
from kernbench.oracle.theory.paths.routes import MESH_GBS, PE_GBS, UCIE_GBS
from kernbench.oracle.theory.topology_file import TopologyFile
from runtime.core.rng import Random, seeded

KIB = 1024
STREAMS = tuple(KIB << shift for shift in (2, 4, 6, 8, 10))


def uncontended(file: TopologyFile, seed: int) -> list[Check]:
    """Group a: random accesses on the user's file."""
    return accesses_on(file, seeded(seed, 0), "a.0", "the file")


def accesses_on(file: TopologyFile, rng: Random, prefix: str, title: str) -> list[Check]:
    """Random accesses on one topology, with ids that start with `prefix`."""
    return [
        Check(
            id=f"{prefix}.{index:02}",
            text=f"{title}: {each.what}",
            formula="sum overheads + sum wires + bytes / narrowest",
            expected=each.expected_ps,
            measured=each.measured_ps,
            unit="ps",
        )
        for index, each in enumerate(_drawn_accesses(Accesses(file), rng))
    ]


def _drawn_accesses(accesses: Accesses, rng: Random) -> Iterator[TimedAccess]:
    file = accesses.file
    # For several packets, the closed form is exact only if each is a whole round of HBM channels.
    whole = file["packet_bytes"] % (file["hbm.burst_bytes"] * file["hbm.num_pcs"]) == 0
    largest = 64 * KIB if whole else file["packet_bytes"]
    for reads in (False, True):
        bank = Bank("hbm", 0, rng.randrange(file.cubes), rng.randrange(file.pes_per_cube))
        yield accesses.host(bank, rng.randint(1, largest), reads=reads)
    for reads in (False, True):
        pe = rng.randrange(file.cubes), rng.randrange(file.pes_per_cube)
        yield accesses.dma(pe, Bank("hbm", 0, *pe), rng.randint(1, largest), reads=reads)
        bank = accesses.draw_bank(rng, pe)
        yield accesses.dma(pe, bank, rng.randint(1, largest), reads=reads)
    nbytes = rng.randint(1, SLOT_BYTES)
    kind = rng.choice(("tcm", "sram"))
    yield from accesses.sends(nbytes, kind, rng.choice((64, 256, 1000)))


def saturation(file: TopologyFile) -> list[Check]:
    """Group b: effective bandwidth of one DMA stream on three routes of the user's file."""
    accesses, last_pe = Accesses(file), file.pes_per_cube - 1
    banks = {
        "own": ("its own slice", Bank("hbm", 0, 0, 0)),
        "far": ("the last slice of its cube", Bank("hbm", 0, 0, last_pe)),
        "cube": ("the last cube", Bank("hbm", 0, file.cubes - 1, last_pe)),
    }
    return [
        _stream(accesses, f"b.{name}.{nbytes // KIB:04}k", memory, bank, nbytes)
        for name, (memory, bank) in banks.items()
        for nbytes in STREAMS
    ]


def _stream(accesses: Accesses, check_id: str, memory: str, bank: Bank, nbytes: int) -> Check:
    """T0 is the latency of the first byte, B the narrowest bandwidth of the route."""
    file = accesses.file
    # A route to another slice contains that to the own one, plus the mesh, plus UCIe.
    gbs = [float(own_read_gbs(file))]
    if bank.pe or bank.cube:
        gbs += [file[MESH_GBS], file[PE_GBS]]
    if bank.cube:
        gbs.append(file[UCIE_GBS])
    timed = accesses.dma((0, 0), bank, nbytes, reads=True)
    t0_ns = accesses.dma_latency_ps((0, 0), bank) / 1000
    return Check(
        id=check_id,
        text=f"a PE reads {nbytes // KIB} KiB of {memory} in one stream",
        formula="n / (T0 + n/B)",
        expected=nbytes / (t0_ns + nbytes / min(gbs)),
        measured=nbytes / timed.measured_ps * 1000,
        tolerance=1e-3,
        unit="GB/s",
    )
