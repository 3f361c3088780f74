"""All-reduces over both dimensions of a grid of SIPs at once: time, bytes on links, sums."""

from collections.abc import Iterator

from kernbench.oracle.checks.check import Check, Relation
from kernbench.oracle.checks.collectives.all_reduce_checks import sums
from kernbench.oracle.checks.collectives.all_reduce_runs import (
    PIPELINE_QUEUE,
    PIPELINE_RATIO,
    AllReduce,
    closed_form_machine,
    on_a_grid,
    outcome_of,
)
from kernbench.oracle.theory.kernels.kernel_costs import ITEM_BYTES
from kernbench.oracle.theory.topology_file import TopologyFile
from tests.fidelity.collectives.drawn_all_reduces import credits_home
from tests.fidelity.theory.torus_all_reduce import (
    TorusAllReduceTimes,
    busiest_link_bytes,
)

GRIDS = {"2": (2, False), "3": (3, False), "3.closed": (3, True)}
"""(side, whether rows and columns are closed) by the name in the ids of the checks. With two SIPs
the closing link is that which both have."""
CUBES, PES = 4, 4
"""A cube has one link to the IO chiplet: fewer cubes would limit the four links of a SIP. Of four
PEs each has its own order of dimensions and direction. Others fill the links while these change
from one dimension to the other."""
NBYTES = 1 << 19
"""Bytes per rank."""
CREDITS = 0.02
"""The most that credits add to the bytes of a link: 16 bytes for each slot of up to 4096."""


def torus(file: TopologyFile, seed: int, name: str) -> list[Check]:
    """All checks of one of `GRIDS`, a square one."""
    return list(_checks(file, seed, name))


def _checks(file: TopologyFile, seed: int, name: str) -> Iterator[Check]:
    side, wraps = GRIDS[name]
    system = on_a_grid(_with_cubes_at_the_io_chiplet(file), side, side, wraps=wraps)
    text = f"torus on {side} x {side} SIPs{' with wrap' if wraps else ''} x {CUBES} x {PES} PEs"
    large = outcome_of(
        system, AllReduce("torus", PES, NBYTES // CUBES // PES // ITEM_BYTES, PIPELINE_QUEUE)
    )
    form_ps = TorusAllReduceTimes(system, PIPELINE_QUEUE).alpha_beta_ps(
        side, side, NBYTES, pes=CUBES * PES, wraps=wraps
    )
    large_text = f"{text}, {NBYTES >> 10} KiB"
    link_bytes = f"(W-1)(W+1)/{'2' if wraps else ''}W^2 n"
    yield Check(
        id=f"i.torus.{name}.ratio",
        text=large.described(f"{large_text}: time / formula"),
        formula=f"T <= {PIPELINE_RATIO} (4(W-1) alpha + max({link_bytes}/B, (2+4/W) n/M))",
        expected=PIPELINE_RATIO,
        measured=large.span_ps / form_ps,
        unit="",
        relation=Relation.AT_MOST,
    )
    yield Check(
        id=f"i.torus.{name}.bytes",
        text=f"{large_text}: bytes on the busiest link",
        formula=f"{link_bytes} + credits",
        expected=float(busiest_link_bytes(side, side, NBYTES, wraps=wraps)),
        measured=max(large.between_sips.values(), default=0),
        tolerance=CREDITS,
        unit="B",
    )
    # Chunks of unequal sizes.
    small = outcome_of(system, AllReduce("torus", PES, side * side + 1, PIPELINE_QUEUE, seed))
    small_text = f"{text}, {side * side + 1} elements each"
    yield sums(small, f"i.torus.{name}.sums", small.described(small_text))
    yield credits_home(small, f"i.torus.{name}.home", small_text)


def _with_cubes_at_the_io_chiplet(file: TopologyFile) -> TopologyFile:
    """Every cube has a link to the IO chiplet, along a row or a column of cubes, and a PE at each
    corner.
    """
    w, h = (CUBES, 1) if file["sip.io_chiplet.edge"] in ("N", "S") else (1, CUBES)
    return closed_form_machine(file).with_values(
        {
            "sip.cube_mesh": {"w": w, "h": h},
            "cube.pe_layout.pe_per_corner": 1,
            "cube.pe_layout.corners": ["NW", "NE", "SW", "SE"],
        }
    )
