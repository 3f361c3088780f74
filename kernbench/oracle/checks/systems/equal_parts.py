"""Group n, equal parts: what the floor plan makes equal takes the same time.

All PEs of two SIPs load at the same time, each from the slice of another PE of its cube. All cubes
have one floor plan, so PEs of one number take equal times in all cubes and SIPs. If the floor plan
of a cube is its own mirror image, so do a PE and its mirror image.
"""

from collections.abc import Callable, Iterator

from kernbench import tl, torch
from kernbench.oracle.checks.check import Check
from kernbench.oracle.theory.topology_file import TopologyFile
from kernbench.simulation import simulate
from runtime.core.dtypes import int8
from runtime.device.rank.rank_state import running_rank
from runtime.language.value import Pointer
from runtime.model.placement import DPPolicy

PACKETS = 4
"""Packets that each PE loads."""
SIPS = 2
SPREAD = DPPolicy(cube="row_wise", pe="row_wise")

Partner = Callable[[int], int]
"""The PE whose slice a PE loads from."""
Span = tuple[int, int, int]
"""SIP, cube and PE of a load."""


def equal_parts(file: TopologyFile) -> list[Check]:
    """All PEs at once: PEs of one number, then mirror images."""
    mesh = {side: min(file[f"sip.cube_mesh.{side}"], 3) for side in "wh"}
    file = file.on_a_ring(SIPS).with_values({"sip.cube_mesh": mesh})
    pes = file.pes_per_cube
    if pes < 2:
        return []
    return [_cubes(file, pes), *_mirrored(file)]


def _cubes(file: TopologyFile, pes: int) -> Check:
    took_ps = _took_ps(file, lambda pe: (pe + pes // 2) % pes)
    spread_ps = max(
        max(times) - min(times)
        for pe in range(pes)
        for times in [[time for (_, _, number), time in took_ps.items() if number == pe]]
    )
    return Check(
        id="n.equal.cubes",
        text=f"{len(took_ps)} PEs load from another slice of their cube: largest difference "
        "between PEs of one number",
        formula="all cubes have one floor plan",
        expected=0,
        measured=spread_ps,
        unit="ps",
    )


def _mirrored(file: TopologyFile) -> Iterator[Check]:
    """Each PE loads from the slice of its mirror image."""
    mirror = mirror_images(file)
    if mirror is None:
        return
    took_ps = _took_ps(file, mirror.__getitem__)
    differences = [
        abs(time - took_ps[sip, cube, mirror[pe]]) for (sip, cube, pe), time in took_ps.items()
    ]
    yield Check(
        id="n.equal.mirror",
        text=f"{len(took_ps)} PEs load from the slice of their mirror image: largest difference "
        "between the two",
        formula="the floor plan is its own mirror image",
        expected=0,
        measured=max(differences),
        unit="ps",
    )


def mirror_images(file: TopologyFile) -> list[int] | None:
    """The mirror image of each PE, west and east exchanged; None if a PE has none."""
    width, layout = file["cube.size_mm.w"], file["cube.pe_layout"]
    positions = [
        tuple(position)
        for corner in layout["corners"]
        for position in layout["pos_mm"][corner][: layout["pe_per_corner"]]
    ]
    x0, _, x1, _ = file["cube.noc.hbm_hole_mm"]
    images = [(width - x, y) for x, y in positions]
    if x0 + x1 not in (0, width) or set(images) != set(positions):
        return None
    return [positions.index(image) for image in images]


def _took_ps(file: TopologyFile, partner: Partner) -> dict[Span, int]:
    """The time of the load of each PE."""
    pes, nbytes = file.pes_per_cube, PACKETS * file["packet_bytes"]

    def kernel(tensor: Pointer) -> None:
        cube, pe = tl.program_id(1), tl.program_id(0)
        tl.load(tensor + (cube * pes + partner(pe)) * nbytes, (nbytes,))

    def program(_rank: int) -> None:
        tensor = torch.empty(file.cubes * pes * nbytes, dtype=int8, dp=SPREAD)
        torch.launch("equal", kernel, tensor)
        device = running_rank().device
        device.synchronize()

    world = simulate(program, SIPS, topology=file.text, data=False)
    return {
        (sip, record.cube, record.pe): record.end_ps - record.start_ps
        for sip, record in world.of("pe_cpu", "kernel equal")
    }
