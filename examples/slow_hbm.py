"""A component of your own in place of one of the model's: an HBM controller that needs 40 ns before it serves an access.

Name it in a topology file, and every SIP is built with it:

    (cat topology.yaml; echo 'impl: {hbm_ctrl: examples.slow_hbm:SlowHbm}') > slow-hbm.yaml
    python launch.py probe --topology slow-hbm.yaml --case dma-own
    python launch.py --topology slow-hbm.yaml
"""

from sip_node.chip.context import ChipContext
from sip_node.chip.fabric.packet import Packet
from sip_node.chip.memory.storage import HbmController

ACCESS_PS = 40_000
"""From a packet's arrival to its access: what opening a row of DRAM and reading its first column takes, roughly."""


class SlowHbm(HbmController):
    """A slice whose controller passes every packet on `ACCESS_PS` late; packets overlap, so its bandwidth stays."""

    def __init__(self, chip: ChipContext, node: int) -> None:
        super().__init__(chip, node)
        self._engine = chip.engine

    def accept(self, packet: Packet, tail_ps: int) -> None:
        """A packet whose head is here now and whose tail will be at `tail_ps`."""
        self._engine.at(
            self._engine.now_ps + ACCESS_PS, super().accept, packet, tail_ps + ACCESS_PS
        )
