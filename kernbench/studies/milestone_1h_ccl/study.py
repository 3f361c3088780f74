"""The study of all-reduces: what it measures, keeps and shows."""

from collections.abc import Callable, Mapping, Sequence
from statistics import median_low
from typing import Any

import numpy as np

from kernbench import DPPolicy
from kernbench.oracle.theory.topology_file import TopologyFile
from kernbench.studies.all_reduce import run_all_reduce
from kernbench.studies.catalogue import CclFlags
from kernbench.studies.milestone_1h_ccl.networks import NETWORKS, RingLayout
from kernbench.studies.milestone_1h_ccl.reference import ASTRA_SIM, explained
from kernbench.studies.milestone_1h_ccl.rows import (
    PARTS,
    CclPoint,
    CclResults,
    CclRow,
    elements,
    joined,
    plan_points,
)
from kernbench.studies.parameter_study import ParameterStudy, TopologyText
from kernbench.studies.table import RowTable, ns
from runtime.core.config.config_file import default_file, read_text
from runtime.core.trace import OpRecord
from runtime.language.value import Array
from runtime.model.topology import parse_topology

SEED = 1
"""Seed of the data; times do not depend on it."""


def shard(rank: int, cubes: int, count: int) -> Array:
    """The tensor of a rank: a row of `count` random int32 for each cube that takes part."""
    rng = np.random.default_rng([SEED, rank, cubes, count])
    limits = np.iinfo(np.int32)
    return rng.integers(limits.min, limits.max, (cubes, count), np.int32, endpoint=True)


def combined(shards: list[Array]) -> Array:
    """The expected content of every row: the sum over ranks and cubes, modulo 2^32."""
    return np.stack(shards).sum(axis=(0, 1), dtype=np.int32)


def _cubes(point: CclPoint) -> int:
    """Cubes that take part: one in the flat ring, all of a SIP in `intercube`."""
    if point.algorithm == "ring":
        return 1
    return parse_topology(point.topology, "topology.yaml", point.network.sips).cubes


def _median_ps(records: list[tuple[int, OpRecord]]) -> int:
    """0 without a record: messages that stay in their slots are not copied."""
    return median_low([record.end_ps - record.start_ps for _, record in records] or [0])


class CclStudy(ParameterStudy[CclPoint, CclRow, CclResults]):
    """All-reduces of up to `max_bytes` a PE, by SIP topology, queue memory and algorithm."""

    results_name = "ccl_sweep.json"
    csv_name = "ccl_summary.csv"
    noun = "all-reduces"
    results_type = CclResults
    version = 2
    figures_module = "kernbench.studies.milestone_1h_ccl.figures"
    table = RowTable[CclRow](
        (
            ("<part", lambda row: row.part),
            ("<SIPs", lambda row: str(row.network)),
            ("<algorithm", lambda row: row.algorithm),
            ("<queues", lambda row: row.buffer_kind),
            ("slots", lambda row: str(row.slots)),
            ("bytes\na PE", lambda row: f"{row.nbytes:,}"),
            ("time\n(ns)", lambda row: ns(row.time_ps)),
            ("alpha-beta\n(ns)", lambda row: ns(row.alpha_beta_ps)),
            ("time /\nalpha-beta", lambda row: f"{row.ratio:.3f}"),
            ("explained\n(ns)", lambda row: "" if row.parts is None else ns(row.parts.total_ps)),
            ("busbw\n(GB/s)", lambda row: f"{row.busbw_gbs:.2f}"),
            ("wrong", lambda row: "FAULT" if row.faults else str(row.wrong)),
        ),
        group=lambda row: (row.part, row.network, row.algorithm, row.buffer_kind),
    )
    flags: CclFlags

    def points(self, topology: TopologyText) -> Sequence[CclPoint]:
        """The sweep, with the `ccl.yaml` of the current directory or the shipped one."""
        ccl = read_text(default_file("ccl.yaml"))
        return plan_points(topology.text, ccl, self.flags.max_bytes)

    def measure(self, point: CclPoint) -> CclRow:
        """Simulate one point."""
        sips = point.network.sips
        cubes = _cubes(point)
        shards = [shard(rank, cubes, elements(point.nbytes)) for rank in range(sips)]
        run = run_all_reduce(
            shards,
            combined(shards),
            DPPolicy(cube="row_wise", num_cubes=cubes, num_pes=1),
            algorithm=point.algorithm,
            topology_yaml=point.topology,
            ccl_yaml=point.ccl,
        )
        theory, queue = point.theory, point.queue
        # `parts` describes the kernel of the ring with queues in TCM, no other.
        explained = point.algorithm == "ring" and point.buffer_kind == "tcm"
        return CclRow(
            part=point.part,
            network=point.network,
            algorithm=point.algorithm,
            buffer_kind=point.buffer_kind,
            slots=queue.slots,
            slot_bytes=queue.slot_bytes,
            nbytes=point.nbytes,
            time_ps=run.time_ps,
            skew_ps=run.skew_ps,
            wrong=run.wrong,
            slot_in_ps=_median_ps(run.world.of("pe_ipcq", "arrival")),
            slot_out_ps=_median_ps(run.world.of("pe_dma", "ipcq_recv")),
            link_gbs=float(theory.ring_link.gbs),
            least_ps=theory.least_ps(point.algorithm, point.nbytes),
            alpha_beta_ps=theory.alpha_beta_ps(point.algorithm, point.nbytes),
            parts=theory.parts(point.nbytes) if explained else None,
        )

    def kept(self, topology: TopologyText) -> Mapping[str, Any]:
        """The ring in each network of the part `size`."""
        file = TopologyFile.of(topology.text)
        layouts = tuple(RingLayout.of(joined(file, each), each.sips) for each in NETWORKS)
        return {"networks": NETWORKS, "layouts": layouts}

    def problem(self, results: CclResults) -> str:
        """The figures need all parts, and the ring of every network."""
        keys = {row.key for row in results.rows}
        if len(keys) != len(results.rows) or not all(map(results.of, PARTS)):
            return "there must be rows of all three parts, none twice"
        if len(results.networks) != len(results.layouts):
            return "there must be a layout for every network"
        return ""

    def csv_columns(self) -> Mapping[str, Callable[[CclRow], object]]:
        """The point, its time and the times of the closed forms."""
        return {
            "part": lambda row: row.part,
            "topology": lambda row: row.network.topology,
            "w": lambda row: row.network.w,
            "h": lambda row: row.network.h,
            "algorithm": lambda row: row.algorithm,
            "buffer_kind": lambda row: row.buffer_kind,
            "slots": lambda row: row.slots,
            "slot_bytes": lambda row: row.slot_bytes,
            "bytes_a_pe": lambda row: row.nbytes,
            "time_ns": lambda row: row.time_ps / 1000,
            "alpha_beta_ns": lambda row: round(row.alpha_beta_ps / 1000, 3),
            # The CSV file has an empty cell for None.
            "explained_ns": lambda row: row.parts and round(row.parts.total_ps / 1000, 3),
            "ratio": lambda row: round(row.ratio, 4),
            "busbw_gbs": lambda row: round(row.busbw_gbs, 3),
            "slot_in_ns": lambda row: row.slot_in_ps / 1000,
            "slot_out_ns": lambda row: row.slot_out_ps / 1000,
            "wrong": lambda row: row.wrong,
        }

    def findings(self, results: CclResults) -> Sequence[str]:  # noqa: ARG002 - a constant
        """The times of ASTRA-sim, each with the closed form that explains it."""
        return [
            f"ASTRA-sim       {run.ranks:>2} NPUs {run.nbytes >> 20:>2} MiB {run.time_us:>8.2f} "
            f"us, explained {explained(run.ranks, run.nbytes).total_ns / 1000:.2f} us"
            for run in ASTRA_SIM
        ]

    def passed(self, results: CclResults) -> str:
        """Number of all-reduces."""
        count = len(results.rows)
        return f"{count} all-reduces: every sum right bit by bit, none below its bound"
