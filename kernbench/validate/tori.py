"""All-reduces over both dimensions of a grid of SIPs at once: time, bytes on links, sums."""

from collections.abc import Iterator

from kernbench.theory.kernel_costs import ITEM_BYTES
from kernbench.theory.topology_file import TopologyFile
from kernbench.theory.torus_all_reduce import TorusAllReduceTimes, busiest_link_bytes
from kernbench.validate.all_reduce_checks import credits_home, sums
from kernbench.validate.all_reduce_runs import (
    AllReduce,
    AllReduceQueue,
    closed_form_machine,
    on_a_grid,
    outcome_of,
)
from kernbench.validate.check import Check, Relation

SIDES = (2, 3)
CUBES, PES = 2, 8
"""A cube has one link to the IO chiplet: one cube would limit the links of both dimensions. Of four
PEs each has its own order of dimensions and direction. Others fill the links while these change
from one dimension to the other."""
NBYTES = 1 << 19
"""Bytes per rank."""
QUEUE = AllReduceQueue(slots=16, slot_bytes=4096, packet_bytes=2048)
"""The queues of the algorithm in the shipped `ccl.yaml`."""
RATIO = 1.15
"""The most that the pipelines need of their form."""
CREDITS = 0.02
"""The most that credits add to the bytes of a link: 16 bytes for each slot of up to 4096."""


def tori(file: TopologyFile, seed: int) -> list[Check]:
    """All checks, by side of a square grid without wrap."""
    file = closed_form_machine(file).with_values({"sip.cube_mesh": {"w": CUBES, "h": 1}})
    return [check for side in SIDES for check in _grid(file, side, seed)]


def _grid(file: TopologyFile, side: int, seed: int) -> Iterator[Check]:
    system = on_a_grid(file, side, side)
    text = f"torus on {side} x {side} SIPs x {CUBES} x {PES} PEs"
    large = outcome_of(system, AllReduce("torus", PES, NBYTES // CUBES // PES // ITEM_BYTES, QUEUE))
    form_ps = TorusAllReduceTimes(system, QUEUE).alpha_beta_ps(
        side, side, NBYTES, pes=CUBES * PES, wraps=False
    )
    large_text = f"{text}, {NBYTES >> 10} KiB"
    yield Check(
        id=f"i.torus.ratio.{side}",
        text=large.described(f"{large_text}: time / formula"),
        formula="T <= 1.15 (4(W-1) alpha + (W-1)(W+1)/W^2 n/B)",
        expected=RATIO,
        measured=large.span_ps / form_ps,
        unit="",
        relation=Relation.AT_MOST,
    )
    yield Check(
        id=f"i.torus.bytes.{side}",
        text=f"{large_text}: bytes on the busiest link",
        formula="(W-1)(W+1)/W^2 n + credits",
        expected=float(busiest_link_bytes(side, side, NBYTES, wraps=False)),
        measured=max(large.between_sips.values(), default=0),
        tolerance=CREDITS,
        unit="B",
    )
    # Chunks of unequal sizes.
    small = outcome_of(system, AllReduce("torus", PES, side * side + 1, QUEUE, seed))
    small_text = f"{text}, {side * side + 1} elements each"
    yield sums(small, f"i.torus.sums.{side}", small.described(small_text))
    yield credits_home(small, f"i.torus.home.{side}", small_text)
