"""The topology file with the least latencies, for what has a lower bound and no closed form."""

from typing import Any

from kernbench.oracle.theory.hbm import BANKS
from kernbench.oracle.theory.parts import without_latencies
from kernbench.oracle.theory.paths.routes import ROUTER_NS
from kernbench.oracle.theory.topology_file import TopologyFile


def with_least_latencies(file: TopologyFile, *, router_ns: float = 0.0) -> TopologyFile:
    """The file in which every latency of a memory or a router is the least one.

    In model `banks`, a read of an open row activates none. With credits, the stages of a router
    replace its overhead, of which `router_ns` is then left.
    """
    values: dict[str, Any] = {}
    if file["hbm.model"] == "banks":
        values[BANKS + "t_rcd_ns"] = 0.0
    if is_clocked(file):
        values[ROUTER_NS] = router_ns
    if values and file.get("overrides", None):
        values["overrides"] = without_latencies(file["overrides"])
    return file.with_values(values) if values else file


def least_router_ns(file: TopologyFile) -> float:
    """The least time in a router: its stages, or the overhead that replaces them."""
    return min(file["noc.router_stages"] / file["noc.clock_ghz"], file[ROUTER_NS])


def is_clocked(file: TopologyFile) -> bool:
    """Whether routers take cycles of their clock, and packets wait for credits."""
    return file["noc.flow_control"] == "credits"
