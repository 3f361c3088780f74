"""The classes of both cores, for tests that run one machine on each."""

from typing import NamedTuple

from sip_node.chip.fabric.fabric import Fabric, ReferenceFabric
from sip_node.chip.fabric.server import Server
from sip_node.pdes.engine import Engine, ReferenceEngine


class LateServer(Server):
    """A class of `impl:`: a link of the compiled fabric with a method in Python."""

    def reserve(self, head_ps: int, tail_ps: int, nbytes: int) -> tuple[int, int]:
        return super().reserve(head_ps + 7, tail_ps + 7, nbytes)


class Core(NamedTuple):
    """The classes of one core."""

    engine: type[ReferenceEngine]
    fabric: type[ReferenceFabric]


REFERENCE = Core(
    engine=ReferenceEngine,
    fabric=ReferenceFabric,
)
COMPILED = Core(
    engine=Engine,
    fabric=Fabric,
)
"""The core that `KERNBENCH_CORE` chooses: tests that compare it need `IS_COMPILED`."""
