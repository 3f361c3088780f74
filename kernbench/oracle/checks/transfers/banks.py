"""Group h, model `banks`: patterns of accesses to the rows of a pseudo channel."""

from collections.abc import Callable, Iterator

from kernbench.oracle.checks.check import Check
from kernbench.oracle.checks.transfers.transfers import TOLERANCE, OneSip
from kernbench.oracle.theory.bandwidths import own_read_gbs
from kernbench.oracle.theory.hbm import BANKS, BankTimes
from kernbench.oracle.theory.topology_file import TopologyFile

ACCESSES = 32
STREAM = 16
"""Length of the stream over refreshes, in multiples of those of other streams."""
REFRESH_TOLERANCE = 0.003
"""A refresh more or less, of 12 % of an interval, in about 60 intervals."""


def banks(file: TopologyFile) -> list[Check]:
    """All checks of the model."""
    file = file.with_values({"hbm.model": "banks", "sip.cube_mesh": {"w": 1, "h": 1}})
    still = file.with_values({BANKS + "t_refi_ns": 0.0})
    return [*_patterns(still), *_streams(still), *_refresh(file)]


class _Pattern:
    """Reads of single bursts of the first channel of a slice, all of them in flight at once."""

    def __init__(self, file: TopologyFile) -> None:
        # All bursts in flight at once, so that latency does not limit the rate.
        window = {"pe.dma.channels": 2 * ACCESSES, "pe.dma.outstanding": 2 * ACCESSES}
        self._system = OneSip(file.with_values(window))
        self._burst, self._pcs = file["hbm.burst_bytes"], file["hbm.num_pcs"]
        self._row_bytes = file[BANKS + "row_bytes"]

    def interval_ps(self, row: Callable[[int], int]) -> float:
        """The steady time of an access, of which access i is to row `row(i)` of the channel."""
        return (self._span_ps(row, 2 * ACCESSES) - self._span_ps(row, ACCESSES)) / ACCESSES

    def _span_ps(self, row: Callable[[int], int], count: int) -> int:
        # Bytes of one channel lie a round of all channels apart, burst by burst.
        round_bytes = self._burst * self._pcs
        offsets = [row(index) * self._row_bytes // self._burst for index in range(count)]
        return self._system.span_ps(
            [
                self._system.read_slice((0, 0), 0, self._burst, offset * round_bytes)
                for offset in offsets
            ]
        )


def _patterns(file: TopologyFile) -> Iterator[Check]:
    """Hits, conflicts and closed rows, on one bank and on all, without refresh."""
    times, burst = BankTimes(file), file["hbm.burst_bytes"]
    count = times.count
    rows: tuple[tuple[str, str, str, Callable[[int], int], float], ...] = (
        ("hits", "of one open row", "s", lambda _: 0, times.bytes_ps(burst)),
        (
            "ping-pong",
            "of two rows of a bank in turn",
            "max(tRAS, tRCD + s) + tRP",
            lambda index: index % 2 * count,
            times.one_bank_ps(burst),
        ),
        (
            "one",
            "each of another row of one bank",
            "max(tRAS, tRCD + s) + tRP",
            lambda index: index * count,
            times.one_bank_ps(burst),
        ),
        (
            "all",
            "each of another row, of all banks in turn",
            "max(s, tRRD, tFAW/4, one bank / banks)",
            lambda index: index,
            float(times.all_banks_ps(burst)),
        ),
    )
    for name, text, formula, row, expected in rows:
        yield _interval(f"h.banks.{name}", text, formula, expected, _Pattern(file).interval_ps(row))
    small = _bound_by_activations(file)
    yield _interval(
        "h.banks.faw",
        f"the same, of {small['hbm.burst_bytes']} B",
        "max(s, tRRD, tFAW/4, one bank / banks)",
        float(BankTimes(small).all_banks_ps(small["hbm.burst_bytes"])),
        _Pattern(small).interval_ps(lambda index: index),
    )


def _bound_by_activations(file: TopologyFile) -> TopologyFile:
    """Bursts that are short and banks that are many enough that only activations count."""
    values = {"hbm.burst_bytes": 32, BANKS + "count": 64, BANKS + "row_bytes": 1024}
    return file.with_values(values)


def _interval(check_id: str, text: str, formula: str, expected: float, measured: float) -> Check:
    return Check(
        id=check_id,
        text=f"single bursts of a channel, {text}: time of each",
        formula=formula,
        expected=expected,
        measured=measured,
        unit="ps",
    )


def _streams(file: TopologyFile) -> Iterator[Check]:
    """A long read, with all banks and with one, whose rows are not hidden."""
    for name, values in (("all", {}), ("one", {BANKS + "count": 1})):
        system = OneSip(_wide(file.with_values(values)))
        times = BankTimes(system.file)
        yield Check(
            id=f"h.banks.stream.{name}",
            text=f"one long read, {times.count} bank{'' if times.count == 1 else 's'} a channel",
            formula="pcs x row / max(s, tRRD, tFAW/4, one bank / banks)",
            expected=_stream_gbs(system.file),
            measured=system.rate_gbs(
                lambda nbytes, read=system.read_slice: [read((0, 0), 0, nbytes)]
            ),
            tolerance=TOLERANCE,
            unit="GB/s",
        )


def _refresh(file: TopologyFile) -> Iterator[Check]:
    """A read over many refreshes, of channels that are slow for the number of bytes."""
    packet_bytes = 16 * file["hbm.burst_bytes"] * file["hbm.num_pcs"]
    # Long rows: only a refresh closes them, so the time to open them again is visible.
    values = {"hbm.pc_bw_gbs": 2.0, "packet_bytes": packet_bytes, BANKS + "row_bytes": 1 << 16}
    file = _wide(file.with_values(values))
    still = file.with_values({BANKS + "t_refi_ns": 0.0})
    # The same bytes in both: the difference of two runs of each leaves no latency.
    rates_gbs = [
        system.rate_gbs(lambda nbytes, read=system.read_slice: [read((0, 0), 0, STREAM * nbytes)])
        for system in (OneSip(file), OneSip(still))
    ]
    yield Check(
        id="h.banks.refresh",
        text="a stream over many refreshes: share of its rate without them",
        formula="1 - (tRFC + tRCD) / tREFI",
        expected=float(BankTimes(file).refresh_share()),
        measured=rates_gbs[0] / rates_gbs[1],
        tolerance=REFRESH_TOLERANCE,
        unit="",
    )


def _stream_gbs(file: TopologyFile) -> float:
    return float(min(own_read_gbs(file), file["hbm.num_pcs"] * BankTimes(file).stream_gbs()))


def _wide(file: TopologyFile) -> TopologyFile:
    """Links that are wider than the slice, so that only the slice limits a stream."""
    gbs = 4 * float(file["hbm.num_pcs"] * file.number("hbm.pc_bw_gbs"))
    return file.with_values({"xbar.to_hbm_bw_gbs": gbs, "pe.tcm.bw_gbs": gbs})
