"""All-reduces over SIPs in rings, tori and meshes: in the order of ranks, and along the links.

`python examples/ring_orders.py` simulates all-reduces of 4 KiB and 256 KiB a rank, on 8 PEs of the
cube nearest to the links. For each topology of the SIPs it prints the most bytes that a link
carries in one direction, the bytes on all links, and the times. A topology of `ccl.yaml` that is
named by its import path keeps the order of ranks, the registry key lets the numbers follow the
links (docs/internals/collective-forms.md). `mesh` is a reduce-scatter along rows, an all-reduce
along columns and an all-gather along rows.
"""

from collections.abc import Iterator

import yaml

from kernbench import DPPolicy, simulate, torch
from kernbench.benches.collective_perf.cubes import nearest_cubes
from runtime.core.config.config_file import default_file
from runtime.model.topology import parse_topology

SMALL, LARGE = 4096, 262_144
"""Bytes of a rank."""
BY_RANK = "runtime.ccl.topologies.ring_1d"
MACHINES: dict[str, dict[str, object]] = {
    "ring of 8": {"count": 8, "topology": "ring_1d"},
    "torus of 4 x 2": {"count": 8, "topology": "torus_2d", "w": 4, "h": 2},
    "mesh of 4 x 2": {"count": 8, "topology": "mesh_2d_no_wrap", "w": 4, "h": 2},
    "mesh of 3 x 3": {"count": 9, "topology": "mesh_2d_no_wrap", "w": 3, "h": 3},
    "torus of 4 x 4": {"count": 16, "topology": "torus_2d", "w": 4, "h": 4},
    "mesh of 4 x 4": {"count": 16, "topology": "mesh_2d_no_wrap", "w": 4, "h": 4},
}
RUNS = {
    "ring, in the order of ranks": ("ring", BY_RANK),
    "ring, along the links": ("ring", "ring_1d"),
    "mesh, per dimension": ("mesh", "system"),
}


def measured(
    machine: dict[str, object], algorithm: str, neighbours: str, nbytes: int
) -> tuple[list[int], float]:
    """(bytes on each link, time of the kernels in us) of one all-reduce."""
    topology = yaml.safe_load(default_file("topology.yaml").read_text())
    topology["system"]["sips"] |= machine
    ccl = yaml.safe_load(default_file("ccl.yaml").read_text())
    ccl["algorithms"][algorithm]["topology"] = neighbours
    text = yaml.safe_dump(topology)
    cube = nearest_cubes(parse_topology(text, "topology.yaml"))[0]

    def program(_rank: int) -> None:
        torch.distributed.init_process_group("ahbm", algorithm=algorithm)
        policy = DPPolicy(pe="column_wise", cubes=(cube,))
        x = torch.empty((1, nbytes // 2), dtype=torch.float16, dp=policy)
        torch.distributed.all_reduce(x)
        torch.ahbm.synchronize()

    sips = int(str(machine["count"]))
    world = simulate(program, sips, topology=text, ccl=yaml.safe_dump(ccl), data=False)
    links = [port.nbytes for chip in world.node.chips.values() for port in chip.boundary.ports]
    kernels = [record for _, record in world.of("pe_cpu.collective", "kernel")]
    time_ps = max(each.end_ps for each in kernels) - min(each.start_ps for each in kernels)
    return links, time_ps / 1e6


def rows() -> Iterator[str]:
    """The lines of the table."""
    yield f"{'':<44}{'256 KiB: KiB on':>22}{'time (us)':>18}"
    heads = f"{'busiest':>11}{'all links':>11}{'4 KiB':>9}{'256 KiB':>9}"
    yield f"{'SIPs':<16}{'algorithm':<28}{heads}"
    for machine, values in MACHINES.items():
        for run, (algorithm, neighbours) in RUNS.items():
            # On a ring of SIPs the grid of `system` would be one row.
            grid = "mesh_2d" if neighbours == "system" and "w" not in values else neighbours
            _, small_us = measured(values, algorithm, grid, SMALL)
            links, large_us = measured(values, algorithm, grid, LARGE)
            carried = f"{max(links) / 1024:>11,.1f}{sum(links) / 1024:>11,.1f}"
            yield f"{machine:<16}{run:<28}{carried}{small_us:>9.2f}{large_us:>9.2f}"


if __name__ == "__main__":
    for row in rows():
        print(row, flush=True)
