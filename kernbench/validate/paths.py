"""Groups a and b: one access alone, and one long stream."""

from collections.abc import Iterator

from kernbench.theory.bandwidths import slice_gbs
from kernbench.theory.topology_file import TopologyFile
from kernbench.validate.accesses import SLOT_BYTES, Accesses, Bank, TimedAccess
from kernbench.validate.check import Check
from kernbench.validate.drawn import drawn
from runtime.core.rng import Random, seeded

TOPOLOGIES = 8
FORMULA = "sum overheads + sum wires + bytes / narrowest"
KIB = 1024
STREAMS = tuple(KIB << shift for shift in (2, 4, 6, 8, 10))


def uncontended(file: TopologyFile, seed: int, number: int) -> list[Check]:
    """Group a on one topology: number 0 is the user's file, the others are drawn at random around it."""
    rng = seeded(seed, number)
    accesses = Accesses(drawn(file, rng) if number else file)
    where = f"drawn {number}" if number else "the file"
    return [
        Check(
            f"a.{number}.{index:02}",
            f"{where}: {each.what}",
            FORMULA,
            each.expected_ps,
            each.measured_ps,
            0,
            "ps",
        )
        for index, each in enumerate(_drawn_accesses(accesses, rng))
    ]


def _drawn_accesses(accesses: Accesses, rng: Random) -> Iterator[TimedAccess]:
    file = accesses.file
    # The closed form of many packets holds where each is a whole round of the pseudo channels.
    whole = file["packet_bytes"] % (file["hbm.burst_bytes"] * file["hbm.num_pcs"]) == 0
    largest = 64 * KIB if whole else file["packet_bytes"]
    for reads in (False, True):
        bank = Bank("hbm", 0, rng.randrange(file.cubes), rng.randrange(file.pes_per_cube))
        yield accesses.host(bank, rng.randint(1, largest), reads=reads)
    for reads in (False, True):
        place = rng.randrange(file.cubes), rng.randrange(file.pes_per_cube)
        yield accesses.dma(place, Bank("hbm", 0, *place), rng.randint(1, largest), reads=reads)
        yield accesses.dma(
            place, accesses.draw_bank(rng, place), rng.randint(1, largest), reads=reads
        )
    yield from accesses.sends(
        rng.randint(1, SLOT_BYTES), rng.choice(("tcm", "sram")), rng.choice((64, 256, 1000))
    )


def saturation(file: TopologyFile) -> list[Check]:
    """Group b: effective bandwidth of one DMA stream along three ways of the user's file."""
    accesses = Accesses(file)
    near, far = Bank("hbm", 0, 0, 0), Bank("hbm", 0, 0, file.pes_per_cube - 1)
    away = Bank("hbm", 0, file.cubes - 1, file.pes_per_cube - 1)
    ways = {
        "own": ("its own slice", near),
        "far": ("the last slice of its cube", far),
        "cube": ("the last cube", away),
    }
    return [
        _stream(accesses, f"b.{name}.{nbytes // KIB:04}k", where, bank, nbytes)
        for name, (where, bank) in ways.items()
        for nbytes in STREAMS
    ]


def _stream(accesses: Accesses, check_id: str, where: str, bank: Bank, nbytes: int) -> Check:
    """T0 is the closed form of the smallest packet less its byte, B the narrowest place."""
    file = accesses.file
    gbs = [float(slice_gbs(file)), file["xbar.to_hbm_bw_gbs"], file["pe.tcm.bw_gbs"]]
    if bank.pe or bank.cube:
        gbs += [file["cube.noc.link_bw_gbs"], file["pe.to_router_bw_gbs"]]
    if bank.cube:
        gbs.append(file["ucie.bw_gbs"])
    timed = accesses.dma((0, 0), bank, nbytes, reads=True)
    t0_ns = accesses.dma_latency_ps((0, 0), bank) / 1000
    says = f"a PE reads {nbytes // KIB} KiB of {where} in one stream"
    expected = nbytes / (t0_ns + nbytes / min(gbs))
    return Check(
        check_id, says, "n / (T0 + n/B)", expected, nbytes / timed.measured_ps * 1000, 1e-3, "GB/s"
    )
