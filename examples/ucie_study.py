"""An example study: the time of an all-reduce by the overhead of a UCIe port.

`python launch.py --bench examples/ucie_study.py:ucie-overhead`
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from msgspec import Struct

from kernbench import DPPolicy, StudyOptions, study
from kernbench.oracle.theory.topology_file import TopologyFile
from kernbench.studies.all_reduce import run_all_reduce
from kernbench.studies.parameter_study import ParameterStudy, TopologyText
from kernbench.studies.plots import BLUE, new_figure
from kernbench.studies.study_results import StudyResults
from kernbench.studies.table import RowTable, ns
from runtime.core.config.config_file import default_file, read_text

OVERHEADS_NS = (2, 4, 8, 16)
ELEMENTS = 1024


@dataclass(frozen=True)
class OverheadPoint:
    """One all-reduce over two SIPs whose UCIe ports have this overhead."""

    topology: str
    overhead_ns: int
    cost: int = 1

    def __str__(self) -> str:
        return f"ucie.overhead_ns {self.overhead_ns}"


class OverheadRow(Struct, frozen=True, forbid_unknown_fields=True):
    """The simulated time, and the number of wrong elements."""

    overhead_ns: int
    time_ps: int
    wrong: int

    @property
    def label(self) -> str:
        """Name of the row in the verdict."""
        return f"{self.overhead_ns} ns"

    @property
    def faults(self) -> list[str]:
        """Failed checks."""
        return [f"{self.wrong} elements are wrong"] if self.wrong else []


class OverheadResults(StudyResults[OverheadRow], frozen=True, forbid_unknown_fields=True):
    """The content of `ucie_overhead.json`: the rows. A study with more to keep adds fields."""


class OverheadStudy(ParameterStudy[OverheadPoint, OverheadRow, OverheadResults]):
    """A point for each of `OVERHEADS_NS`."""

    results_name = "ucie_overhead.json"
    results_type = OverheadResults
    noun = "all-reduces"
    table = RowTable[OverheadRow](
        (
            ("UCIe overhead\n(ns)", lambda row: str(row.overhead_ns)),
            ("time\n(ns)", lambda row: ns(row.time_ps)),
        ),
        # No groups of rows.
        group=lambda _: None,
    )

    def points(self, topology: TopologyText) -> list[OverheadPoint]:
        """Variants of the topology file."""
        pair = TopologyFile.of(topology.text).on_a_ring(2)
        return [
            OverheadPoint(pair.with_values({"ucie.overhead_ns": overhead_ns}).text, overhead_ns)
            for overhead_ns in OVERHEADS_NS
        ]

    def measure(self, point: OverheadPoint) -> OverheadRow:
        """One all-reduce, simulated in a worker process."""
        shards = [np.full((1, ELEMENTS), rank + 1, np.int32) for rank in range(2)]
        run = run_all_reduce(
            shards,
            shards[0] + shards[1],
            DPPolicy(cube="row_wise", num_cubes=1, num_pes=1),
            algorithm="ring",
            topology_yaml=point.topology,
            ccl_yaml=read_text(default_file("ccl.yaml")),
        )
        return OverheadRow(overhead_ns=point.overhead_ns, time_ps=run.time_ps, wrong=run.wrong)

    def figures(self) -> Mapping[str, Callable[[OverheadResults], Any]]:
        """One figure, by the name of its file."""
        return {"ucie_overhead.png": draw}

    def passed(self, results: OverheadResults) -> str:
        """The verdict if no row has a fault."""
        return f"{len(results.rows)} all-reduces: every sum right"


def draw(results: OverheadResults) -> Any:
    """Time against overhead."""
    rows = results.rows
    figure = new_figure(4.5, "All-reduce of 4 KiB over two SIPs: latency grows with the UCIe ports")
    axes = figure.subplots()
    axes.plot([row.overhead_ns for row in rows], [row.time_ps / 1e3 for row in rows], "o-", c=BLUE)
    axes.set_xlabel("overhead of a UCIe port (ns)")
    axes.set_ylabel("time of the all-reduce (ns)")
    return figure


@study("ucie-overhead", "an all-reduce of 4 KiB by the overhead of the UCIe ports")
def ucie_overhead(options: StudyOptions) -> bool:
    """Whether every sum is right."""
    return OverheadStudy().run(options)
