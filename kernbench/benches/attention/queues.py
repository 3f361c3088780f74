"""The queues of `split_decode`: a mapper for a table in `ccl.yaml`.

queues:
hypercube: {mapper: "kernbench.benches.attention.queues:hypercube"}
"""

from runtime.ccl.mappers import Mapping
from runtime.core.config.plain_yaml import from_yaml, to_yaml
from runtime.model.topology import Topology

HYPERCUBE = "hypercube"
"""The name of the table."""


def hypercube(topology: Topology, root_cube: int) -> Mapping:  # noqa: ARG001 - the signature of a mapper
    """`bit_b` to the PE whose number differs in bit b: between all PEs of a cube, and above that
    between PE 0 of cubes. Numbers without a counterpart have no queue.
    """
    pes, cubes = topology.pes_per_cube, topology.cubes
    local = {
        (cube, pe): {
            f"bit_{bit}": (cube, pe ^ 1 << bit)
            for bit in range((pes - 1).bit_length())
            if pe ^ 1 << bit < pes
        }
        for cube in range(cubes)
        for pe in range(pes)
    }
    above = (pes - 1).bit_length()
    for cube in range(cubes):
        local[cube, 0] |= {
            f"bit_{above + bit}": (cube ^ 1 << bit, 0)
            for bit in range((cubes - 1).bit_length())
            if cube ^ 1 << bit < cubes
        }
    return Mapping(tuple(local), local, frozenset())


def with_hypercube(ccl: str) -> str:
    """The text of a `ccl.yaml` with the table `hypercube`."""
    content = from_yaml(ccl)
    table = {HYPERCUBE: {"mapper": f"{hypercube.__module__}:{hypercube.__name__}"}}
    return to_yaml(content | {"queues": content.get("queues", {}) | table})
