"""Packets that stand still in the routers of a SIP, and the buffers that they wait for.

For the diagnosis of a run in which no event is left: then nothing moves, and every buffer with a
packet is blocked for good. A buffer waits for another one

- if its packet has a virtual channel: for the buffer at the other end, which is full;
- if not: for each channel of its network, so for the buffers at their ends, and for the buffers
  whose packets have these channels;
- at an exit: for the component behind it.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from sip_node.chip.fabric.packet import Packet

CLASSES = ("requests", "replies")

ChannelKey = tuple[int, int, int]
"""A virtual channel: the index of its link, of its network at the link, of the channel there."""


class StalledPacket(NamedTuple):
    """A packet in `buffer`, or at a source (empty name), that waits for the buffer `waits_for`."""

    buffer: str
    packet: Packet
    waits_for: str


class ChannelState(NamedTuple):
    """A virtual channel of `link` at the end of a run, and the buffer at its end.

    `packet` is the first one in the buffer, None if it is empty. This packet has the channel
    `held`, or needs one of the channels `needed`. At an exit there is no buffer.
    """

    key: ChannelKey
    link: str
    is_exit: bool
    packet: Packet | None
    held: ChannelKey | None
    needed: tuple[ChannelKey, ...]


class SourceState(NamedTuple):
    """The packets that wait at a source for one of the channels `needed`."""

    packets: tuple[Packet, ...]
    needed: tuple[ChannelKey, ...]


def network_name(link: str, network: int, layers: int) -> str:
    """`cube0.router.r0c0->cube0.router.r0c1 (requests, layer 0)`."""
    message_class, layer = divmod(network, layers)
    return f"{link} ({CLASSES[message_class]}, layer {layer})"


def stalled_packets(
    channels: Iterable[ChannelState], sources: Iterable[SourceState], layers: int
) -> Iterator[StalledPacket]:
    """The packets that stand still, once for each buffer that they wait for."""
    states = {each.key: each for each in channels}
    names = {
        key: f"{network_name(each.link, key[1], layers)}, VC {key[2]}"
        for key, each in states.items()
        if each.packet is not None
    }
    holders = {states[key].held: key for key in names}
    for key, name in names.items():
        packet = states[key].packet
        assert packet is not None, "a buffer with a name has a packet"
        for waits_for in _waits_for(states[key], states, names, holders, layers):
            yield StalledPacket(name, packet, waits_for)
    for source in sources:
        full = [names[key] for key in source.needed if key in names]
        for packet in source.packets:
            yield from (StalledPacket("", packet, waits_for) for waits_for in full)


def _waits_for(
    buffer: ChannelState,
    states: Mapping[ChannelKey, ChannelState],
    names: Mapping[ChannelKey, str],
    holders: Mapping[ChannelKey | None, ChannelKey],
    layers: int,
) -> Iterator[str]:
    for key in buffer.needed if buffer.held is None else (buffer.held,):
        if states[key].is_exit:
            yield network_name(states[key].link, key[1], layers)
        elif key in names:
            yield names[key]
        # A channel whose buffer is empty may still belong to a packet that has not all come.
        holder = holders.get(key)
        if holder is not None and holder != buffer.key:
            yield names[holder]
