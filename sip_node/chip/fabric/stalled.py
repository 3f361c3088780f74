"""Which packets stand still in the routers of a SIP, and which buffers they wait for.

For the diagnosis of a run in which no event is left: then nothing moves, and every buffer with a
packet is blocked for good. A buffer waits for another one

- if its packet has a virtual channel: for the buffer at the other end, which is full;
- if not: for each channel of its network, so for the buffers at their ends, and for the buffers
  whose packets have these channels;
- at an exit: for the component behind it.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from sip_node.chip.fabric.injection import Injection
from sip_node.chip.fabric.packet import Packet
from sip_node.chip.fabric.virtual_channels import InputVc, OutputVc, VirtualNetwork

CLASSES = ("requests", "replies")


class StalledPacket(NamedTuple):
    """A packet in `buffer`, or at a source (empty name), that waits for the buffer `waits_for`."""

    buffer: str
    packet: Packet
    waits_for: str


def network_name(network: VirtualNetwork, layers: int) -> str:
    """`cube0.router.r0c0->cube0.router.r0c1 (requests, layer 0)`."""
    message_class, layer = divmod(network.index, layers)
    return f"{network.port.name} ({CLASSES[message_class]}, layer {layer})"


def stalled_packets(
    networks: Iterable[VirtualNetwork], injections: Iterable[Injection], layers: int
) -> Iterator[StalledPacket]:
    """The packets that stand still, once for each buffer that they wait for."""
    names = dict(_named_buffers(networks, layers))
    holders = {buffer.vc: buffer for buffer in names if buffer.vc is not None}
    for buffer, name in names.items():
        for waits_for in _waits_for(buffer, names, holders, layers):
            yield StalledPacket(name, buffer.packets[0][0].packet, waits_for)
    for injection in injections:
        full = [names[each.target] for each in injection.network.vcs if each.target in names]
        for worm in injection.worms:
            yield from (StalledPacket("", worm.packet, waits_for) for waits_for in full)


def _named_buffers(
    networks: Iterable[VirtualNetwork], layers: int
) -> Iterator[tuple[InputVc, str]]:
    """Every buffer with a packet, and its name."""
    for network in networks:
        for number, channel in enumerate(network.vcs):
            if channel.target is not None and channel.target.packets:
                yield channel.target, f"{network_name(network, layers)}, VC {number}"


def _waits_for(
    buffer: InputVc,
    names: Mapping[InputVc, str],
    holders: Mapping[OutputVc, InputVc],
    layers: int,
) -> Iterator[str]:
    for channel in buffer.network.vcs if buffer.vc is None else (buffer.vc,):
        if channel.target is None:
            yield network_name(buffer.network, layers)
        elif channel.target in names:
            yield names[channel.target]
        # A channel whose buffer is empty may still belong to a packet that has not all come.
        holder = holders.get(channel)
        if holder is not None and holder is not buffer:
            yield names[holder]
