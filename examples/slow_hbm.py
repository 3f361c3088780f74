"""An HBM controller which starts every access 40 ns late, instead of the model's controller.

Name the class in a topology file, and every SIP is built with it:

    (cat topology.yaml; echo 'impl: {hbm_ctrl: examples.slow_hbm:SlowHbm}') > slow-hbm.yaml
    python launch.py probe --topology slow-hbm.yaml --case dma-own
    python launch.py --topology slow-hbm.yaml
"""

from sip_node.chip.context import ChipContext
from sip_node.chip.fabric.packet import Packet
from sip_node.chip.memory.storage import HbmController

ACCESS_PS = 40_000
"""Delay from the arrival of a packet to its access: a row activation and a column read of DRAM."""


class SlowHbm(HbmController):
    """A slice whose controller delays every packet; packets overlap, so bandwidth is the same."""

    def __init__(self, chip: ChipContext, node: int) -> None:
        super().__init__(chip, node)
        self._engine = chip.engine

    def accept(self, packet: Packet, tail_ps: int) -> None:
        """Accept a packet whose head has arrived and whose tail arrives at `tail_ps`."""
        self._engine.at(
            self._engine.now_ps + ACCESS_PS, super().accept, packet, tail_ps + ACCESS_PS
        )
