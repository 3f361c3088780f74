"""Group h: rows of a matrix at a pitch, which share the channels of a slice unevenly."""

from collections import Counter
from collections.abc import Iterator

from kernbench import tl, torch
from kernbench.oracle.checks.check import Check
from kernbench.oracle.theory.bandwidths import channel_gbs
from kernbench.oracle.theory.servers import transfer_ps
from kernbench.oracle.theory.topology_file import TopologyFile
from kernbench.simulation import simulate
from runtime.core import dtypes
from runtime.core.trace import OpRecord
from runtime.language.value import Pointer
from runtime.model.placement import ONE_PE
from tests.fidelity.theory.memory_turns import OWNER, MemoryTurns

ROW_BYTES, ROWS = 128, 32
"""A packet of 4 KiB holds 32 rows of 128 B."""
OWN = OWNER[1]
WIDE_GBS = 4000.0
"""Bandwidth of the links: a packet then takes its time at the slice only."""


def memory_rows(file: TopologyFile) -> list[Check]:
    """Loads and stores of rows on one channel, on some channels, and in two packets."""
    file = file.with_values(
        {
            "sip.cube_mesh": {"w": 1, "h": 1},
            "packet_bytes": ROW_BYTES * ROWS,
            "cube.hbm_ctrl.switch_penalty_ns": 0.0,
            "xbar.to_hbm_bw_gbs": WIDE_GBS,
            "pe.tcm.bw_gbs": WIDE_GBS,
        }
    )
    round_bytes = file["hbm.burst_bytes"] * file["hbm.num_pcs"]
    return [
        *_loads(file, {"one": round_bytes, "two": round_bytes // 2, "all": round_bytes * 9 // 8}),
        _two_packets(file),
        _store(file, round_bytes + 8),
    ]


def _loads(file: TopologyFile, pitches: dict[str, int]) -> Iterator[Check]:
    turns = MemoryTurns(file)
    for name, pitch in pitches.items():
        served_ps = max(_channels_ps(file, pitch, range(ROWS)).values())
        yield _check(
            f"h.rows.{name}",
            f"a load of {ROWS} rows of {ROW_BYTES} B at a pitch of {pitch} B",
            "T0 + bytes of the busiest channel / its B",
            turns.requested_ps(OWN) + served_ps + turns.returned_ps(OWN),
            _record(file, pitch, ROWS, "load"),
        )


def _two_packets(file: TopologyFile) -> Check:
    """Rows of two packets; the second one begins in the middle of a round of the channels."""
    pitch, turns = ROW_BYTES * 5 // 4, MemoryTurns(file)
    first, second = (
        _channels_ps(file, pitch, range(ROWS * packet, ROWS * (packet + 1))) for packet in (0, 1)
    )
    # Each packet is rounded up on its own.
    both = [first.get(channel, 0) + second.get(channel, 0) for channel in first | second]
    # The second packet leaves when the last of its channels has begun to serve it.
    left_ps = max(first.get(channel, 0) for channel in second)
    on_link_ps = transfer_ps(ROW_BYTES * ROWS, file.number("xbar.to_hbm_bw_gbs"))
    served_ps = max(*both, left_ps + on_link_ps)
    return _check(
        "h.rows.packets",
        f"a load of {2 * ROWS} rows of {ROW_BYTES} B at a pitch of {pitch} B, in two packets",
        "T0 + bytes of the busiest channel / its B",
        turns.requested_ps(OWN) + served_ps + turns.returned_ps(OWN),
        _record(file, pitch, 2 * ROWS, "load"),
    )


def _store(file: TopologyFile, pitch: int) -> Check:
    """A second packet of one row on a channel that is free before those of the first packet."""
    turns, rows = MemoryTurns(file), ROWS + 1
    served_ps = max(_channels_ps(file, pitch, range(rows)).values())
    return _check(
        "h.rows.store",
        f"a store of {rows} rows of {ROW_BYTES} B at a pitch of {pitch} B, in two packets",
        "T0 + bytes of the busiest channel / its B",
        turns.writes_from_ps(OWN) + served_ps + turns.acknowledged_ps(OWN),
        _record(file, pitch, rows, "store"),
    )


def _channels_ps(file: TopologyFile, pitch: int, rows: range) -> dict[int, int]:
    """The time of the bytes of some rows on each channel."""
    burst, count = file["hbm.burst_bytes"], file["hbm.num_pcs"]
    nbytes = Counter(
        (row * pitch + column) // burst % count for row in rows for column in range(ROW_BYTES)
    )
    return {channel: transfer_ps(each, channel_gbs(file)) for channel, each in nbytes.items()}


def _record(file: TopologyFile, pitch: int, rows: int, name: str) -> OpRecord:
    """The record of the DMA for a load, or for a store, by PE 0 in its own slice."""

    def kernel(x: Pointer) -> None:
        if name == "load":
            tl.load(x, (rows, ROW_BYTES), (pitch, 1))
        else:
            tl.store(x, tl.zeros((rows, ROW_BYTES), dtypes.int8), (pitch, 1))

    def program(_rank: int) -> None:
        torch.launch("rows", kernel, torch.empty(rows * pitch, dtype=torch.int8, dp=ONE_PE))
        torch.ahbm.synchronize()

    [(_, record)] = simulate(program, 1, topology=file.text, data=False).of("pe_dma", name)
    return record


def _check(check_id: str, text: str, formula: str, expected: int, record: OpRecord) -> Check:
    return Check(
        id=check_id,
        text=text,
        formula=formula,
        expected=expected,
        measured=record.end_ps - record.start_ps,
        unit="ps",
    )
