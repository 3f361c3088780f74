"""Sensitivity of the results to numbers of the topology file.

`python -m tests.fidelity.tables.sensitivity` prints the tables of
`docs/internals/sensitivity.md`, for the topology that ships with kernbench.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kernbench.benches.ccl_allreduce import ccl_allreduce
from kernbench.measure.transfers.cases import ProbeCases
from kernbench.measure.transfers.measure import ProbeTransfer, measure
from kernbench.simulation import simulate
from runtime.core.bench_registry import BenchOutcome
from runtime.core.config.config_file import default_file, read_text, value_at, with_values
from runtime.core.config.plain_yaml import from_yaml, to_yaml
from runtime.core.simtime import ns_from_ps
from runtime.model.topology import parse_topology
from tests.fidelity.tables import streams

SIPS = 2
CASES = ("dma-own", "dma-cube-worst", "dma-sip-1")
SIZES: Mapping[str, int] = {"4 KiB": 1 << 12, "1 MiB": 1 << 20}
ALL_REDUCE_BYTES = 16 << 10


@dataclass(frozen=True)
class Variation:
    """The topology file with another number at one key path."""

    name: str
    key_path: str
    value: float

    def applied_to(self, topology_yaml: str) -> str:
        """The text of the file with the number in it; `KeyError` if the file has no such key."""
        content = from_yaml(topology_yaml)
        shipped = value_at(content, self.key_path)
        varied = with_values(content, {self.key_path: type(shipped)(self.value)})
        return to_yaml(varied)


VARIATIONS = (
    *(Variation(f"UCIe {ns} ns a port", "ucie.overhead_ns", ns) for ns in (2, 4, 8)),
    *(
        Variation(f"HBM efficiency {share:.2f}", "cube.hbm_ctrl.efficiency", share)
        for share in (0.7, 0.8, 0.9, 0.95)
    ),
)


def columns() -> list[str]:
    """The headings of the results, in the order of `results_ps`."""
    return [
        *(f"`{case}` {size} (ns)" for case in CASES for size in SIZES),
        "all-reduce 16 KiB (ns)",
    ]


def results_ps(topology_yaml: str) -> list[int]:
    """The transfers, and an `intercube` all-reduce over two SIPs, for one topology."""
    cases = ProbeCases(parse_topology(topology_yaml, "topology.yaml", SIPS))
    by_name = {case.name: case for case in cases.cases}
    transfers = [
        ProbeTransfer(by_name[name], "read", nbytes) for name in CASES for nbytes in SIZES.values()
    ]
    rows = measure(cases, topology_yaml, transfers)
    return [*(row.measured_ps for row in rows), all_reduce_ps(topology_yaml)]


def all_reduce_ps(topology_yaml: str) -> int:
    """The time of the all-reduce of `ccl-allreduce` at 16 KiB a cube, on the slowest rank."""

    def program(rank: int) -> BenchOutcome:
        return ccl_allreduce(
            rank, algorithm="intercube", min_bytes=ALL_REDUCE_BYTES, max_bytes=ALL_REDUCE_BYTES
        )

    outcomes: Mapping[int, BenchOutcome] = simulate(
        program, SIPS, topology=topology_yaml, data=False
    ).returned
    return max(outcome.rows[0].time_ps for outcome in outcomes.values())


def markdown(variations: Sequence[Variation], results: Sequence[Sequence[int]]) -> list[str]:
    """The lines of the table, times in nanoseconds."""
    lines = [_line("one number changed", columns()), "| --- |" + " ---: |" * len(columns())]
    return [
        *lines,
        *(
            _row(variation, times_ps)
            for variation, times_ps in zip(variations, results, strict=True)
        ),
    ]


def _row(variation: Variation, times_ps: Sequence[int]) -> str:
    return _line(variation.name, [f"{ns_from_ps(time_ps):.1f}" for time_ps in times_ps])


def _line(first: str, cells: Sequence[str]) -> str:
    return f"| {' | '.join([first, *cells])} |"


def main() -> None:
    """Print the tables."""
    shipped = read_text(default_file("topology.yaml"))
    results = [results_ps(variation.applied_to(shipped)) for variation in VARIATIONS]
    print("\n".join(markdown(VARIATIONS, results)))
    for table in streams.tables(shipped):
        print("", table, sep="\n")


if __name__ == "__main__":
    main()
