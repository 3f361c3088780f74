"""The checks of `validate` on random variants of the topology file."""

from kernbench.oracle.checks.check import Check
from kernbench.oracle.checks.engines.vector_chains import chains_on
from kernbench.oracle.checks.engines.vector_times import streams_on
from kernbench.oracle.checks.launches.launch_paths import launch_paths
from kernbench.oracle.checks.launches.launches import launches
from kernbench.oracle.checks.launches.messages import messages_on
from kernbench.oracle.checks.transfers.paths import accesses_on
from kernbench.oracle.theory.topology_file import TopologyFile
from runtime.core.rng import seeded
from tests.fidelity.machines.drawn import drawn

ACCESS_VARIANTS, LAUNCH_VARIANTS = 8, 3
"""Random topologies of group a; of groups l and m."""


def drawn_accesses(file: TopologyFile, seed: int, number: int) -> list[Check]:
    """Group a on a variant."""
    rng = seeded(seed, number)
    return accesses_on(drawn(file, rng), rng, f"a.{number}", f"drawn {number}")


def drawn_launches(file: TopologyFile, seed: int, number: int) -> list[Check]:
    """Group l, launches on streams, on a variant."""
    return launches(drawn(file, seeded(seed, number)), f"l.{number}", f"drawn {number}")


def drawn_launch_paths(file: TopologyFile, seed: int, number: int) -> list[Check]:
    """Group l, the path of a launch, on a variant."""
    return launch_paths(drawn(file, seeded(seed, number)), f"l.{number}", f"drawn {number}")


def drawn_messages(file: TopologyFile, seed: int, number: int) -> list[Check]:
    """Group m on a variant."""
    rng = seeded(seed, number)
    return messages_on(drawn(file, rng), rng, f"m.{number}", f"drawn {number}")


def drawn_streams(file: TopologyFile, seed: int) -> list[Check]:
    """Streams of the vector engine on a variant."""
    return streams_on(drawn(file, seeded(seed, 0)), "v.bound.drawn", "drawn: ")


def drawn_chains(file: TopologyFile, seed: int) -> list[Check]:
    """Chains of the vector engine on a variant."""
    return chains_on(drawn(file, seeded(seed, 0)), "v.chain.drawn", "drawn: ")
