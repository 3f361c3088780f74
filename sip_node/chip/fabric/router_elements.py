"""Constructs the parts of the clocked routers of one SIP, which share one agenda."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from runtime.core.compiled.choice import IS_COMPILED
from sip_node.chip.fabric.cycle_queue import CycleQueue
from sip_node.chip.fabric.injection import Injection, Injector
from sip_node.chip.fabric.noc_clock import NocClock, Pipeline
from sip_node.chip.fabric.router import Router
from sip_node.chip.fabric.stalled import ChannelKey, ChannelState, SourceState
from sip_node.chip.fabric.virtual_channels import (
    InputPort,
    InputVc,
    OutputPort,
    OutputVc,
    VirtualNetwork,
)
from sip_node.pdes.engine import Engine


class RouterElements:
    """The routers, links, virtual networks and sources of one SIP, in the order of construction."""

    def __init__(self, engine: Engine, clock: NocClock) -> None:
        self._clock, self._queue = clock, CycleQueue(engine, clock.period_ps)
        self._inputs: dict[OutputPort, InputPort] = {}
        self._injectors: dict[OutputPort, Injector] = {}
        self._injections: dict[VirtualNetwork, Injection] = {}
        self._networks: list[VirtualNetwork] = []

    def router(self, pipeline: Pipeline) -> Router:
        """A router."""
        return Router(self._queue, pipeline)

    def port(
        self, name: str, index: int, source: Router | None, flit_cycles: int, delay: int
    ) -> OutputPort:
        """An output of `source`, or of a component, and the link behind it."""
        del source  # The turns of an output are attributes of the inputs.
        units = (self._clock.flit_bytes, self._clock.period_ps)
        return OutputPort(name, index, flit_cycles, delay, units)

    def network(
        self, port: OutputPort, index: int, vcs: int, target: Router | None, depth: int, wire: int
    ) -> VirtualNetwork:
        """A virtual network of `port` with `vcs` channels.

        At a router `target` they have buffers of `depth` flits, and a credit passes a wire of
        `wire` cycles.
        """
        channels = [
            self._channel(port, (index * vcs + vc, vc), target, depth, wire) for vc in range(vcs)
        ]
        found = VirtualNetwork(self._queue, port, index, channels)
        self._networks.append(found)
        return found

    def injection(self, network: VirtualNetwork) -> Injection:
        """The queue of a source in front of one of its virtual networks."""
        found = self._injections.get(network)
        if found is None:
            injector = self._injectors.get(network.port)
            if injector is None:
                injector = self._injectors[network.port] = Injector(self._queue, network.port)
            found = Injection(self._queue, injector, network, self._clock)
            self._injections[network] = found
        return found

    def channels(self) -> Iterator[ChannelState]:
        """The state of every virtual channel."""
        keys = {vc: key for network in self._networks for vc, key in _keys(network)}
        for network in self._networks:
            for vc, key in _keys(network):
                buffer = vc.target
                packets = buffer.packets if buffer is not None else ()
                held = buffer.vc if buffer is not None else None
                yield ChannelState(
                    key=key,
                    link=network.port.name,
                    is_exit=buffer is None,
                    packet=packets[0][0].packet if packets else None,
                    held=None if held is None else keys[held],
                    needed=_keys_of(buffer.network) if buffer is not None and packets else (),
                )

    def sources(self) -> Iterator[SourceState]:
        """The packets that wait at each source, by virtual network."""
        for injection in self._injections.values():
            packets = tuple(worm.packet for worm in injection.worms)
            yield SourceState(packets, _keys_of(injection.network))

    def _channel(
        self,
        port: OutputPort,
        numbers: tuple[int, int],
        target: Router | None,
        depth: int,
        wire: int,
    ) -> OutputVc:
        """Both ends of a virtual channel with `numbers` at its port and in its network."""
        index, number = numbers
        if target is None:
            return OutputVc(number, None, 0)
        entrance = self._inputs.get(port)
        if entrance is None:
            entrance = self._inputs[port] = InputPort(port.index)
        credit_cycles = target.pipeline.leave + wire
        buffer = InputVc(self._queue, target, entrance, index, target.pipeline, credit_cycles)
        buffer.feeder = OutputVc(number, buffer, depth)
        return buffer.feeder


def _keys(network: VirtualNetwork) -> Iterator[tuple[OutputVc, ChannelKey]]:
    for number, vc in enumerate(network.vcs):
        yield vc, (network.port.index, network.index, number)


def _keys_of(network: VirtualNetwork) -> tuple[ChannelKey, ...]:
    return tuple(key for _, key in _keys(network))


if not TYPE_CHECKING and IS_COMPILED:
    from sip_node.compiled.router_parts import RouterParts

    class CompiledElements(RouterParts):
        """The parts in C."""

        def channels(self) -> Iterator[ChannelState]:
            """The state of every virtual channel."""
            return map(ChannelState._make, super().channels())

        def sources(self) -> Iterator[SourceState]:
            """The packets that wait at each source, by virtual network."""
            return map(SourceState._make, super().sources())
