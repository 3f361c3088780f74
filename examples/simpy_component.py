"""A component written as a SimPy process: an HBM controller with a request queue and two ports.

The engine of an LP is a `simpy.Environment`, so a component may be written as in any SimPy model.
Here a `Store` is the request queue of the controller, a `Resource` its ports, and two processes do
the work: one dispatches the requests in order of arrival, one serves each request. A request holds
a port for `ACCESS_PS` and then continues to the HBM slice of the model, so a slice starts at most
`PORTS` packets in `ACCESS_PS`:

    packets of 4096 B: 2 x 4096 B / 64 ns = 128 GB/s

Name the class in a topology file, and every HBM slice of every SIP is built with it:

    (cat topology.yaml; echo 'impl: {hbm_ctrl: examples.simpy_component:QueuedHbm}') > queued.yaml
    python launch.py probe --topology queued.yaml --case dma-own
    python launch.py --topology queued.yaml

Rules for such a component, which keep the result equal for every number of processes:

- Times are integers in picoseconds: `engine.timeout(40_000)` is 40 ns; `engine.now_ps` is now.
- Its state belongs to one SIP. It reaches other components only by packets.
- It decides by simulated time and by its packets alone: no wall clock, no random numbers, no sets.
- It may delay a packet, never pass it on before the packet arrived.

SimPy's events and the calls of the model share one queue, in one order. The components of the model
use calls because they are faster (`docs/adr/0006-calls-in-the-event-queue.md`).
"""

from collections.abc import Generator
from typing import Any

import simpy

from sip_node.chip.context import ChipContext
from sip_node.chip.fabric.packet import Packet
from sip_node.chip.memory.storage import HbmController

PORTS = 2
ACCESS_PS = 64_000
"""Time for which a request holds a port."""

Steps = Generator[simpy.Event, Any, None]


class QueuedHbm(HbmController):
    """An HBM slice behind a FIFO of requests and `PORTS` ports."""

    def __init__(self, chip: ChipContext, node: int) -> None:
        super().__init__(chip, node)
        self._engine = chip.engine
        self._requests = simpy.Store(chip.engine)
        self._ports = simpy.Resource(chip.engine, capacity=PORTS)
        chip.engine.process(self._dispatch())

    def accept(self, packet: Packet, tail_ps: int) -> None:
        """Queue a packet whose head has arrived and whose tail arrives at `tail_ps`."""
        self._requests.put((packet, self._engine.now_ps, tail_ps))

    def _dispatch(self) -> Steps:
        """Take requests in order of arrival; each waits for a free port."""
        while True:
            packet, head_ps, tail_ps = yield self._requests.get()
            port = self._ports.request()
            yield port
            self._engine.process(self._serve(port, packet, head_ps, tail_ps))

    def _serve(
        self, port: simpy.resources.resource.Request, packet: Packet, head_ps: int, tail_ps: int
    ) -> Steps:
        """Hold the port, then give the packet to the slice. Its tail is delayed like its head."""
        yield self._engine.timeout(ACCESS_PS)
        self._ports.release(port)
        super().accept(packet, tail_ps + self._engine.now_ps - head_ps)
