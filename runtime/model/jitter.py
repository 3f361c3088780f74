"""Random delays of hosts and of the links between SIPs: section `jitter` of `topology.yaml`.

A delay is uniform over the picoseconds from 0 to its bound. That of the nth event of a source
follows from the seed, the name of the source and n alone (a counter-based generator: J. K. Salmon
et al., Parallel Random Numbers: As Easy as 1, 2, 3, 2011). So it does not depend on the number of
processes, and a source that has more or fewer events changes no delay of another one.
"""

from msgspec import structs

from runtime.core.config.plain_yaml import to_yaml
from runtime.core.sha256 import sha256_hex
from runtime.core.simtime import ps_from_ns
from runtime.model.parts.overrides import parts_of
from runtime.model.schema.jitter_schema import JitterConfig
from runtime.model.schema.topology_schema import Topology

ENGINE = "jitter"
"""The engine of the records of delays; their names are those of the sources."""
START, COMMAND = "start", "command"
"""The sources of a host."""
NOT_MEASURED = "times without jitter, which is uniform from 0 to (ns): {}"
"""A line of reports on closed forms, with the bounds."""
CROSSING = "jitter.crossing_ns"
_HEX_DIGITS = 16
_KEYS = ("start_skew_ns", "command_ns", "crossing_ns")


class Jitter:
    """The delays of one source, from 0 to `bound_ps`; `name` is unique in the machine."""

    def __init__(self, topology: Topology, name: str, bound_ns: float) -> None:
        self._seed, self._name = topology.jitter.seed, name
        self.bound_ps = ps_from_ns(bound_ns)
        self._count = 0

    def next_ps(self) -> int:
        """The delay of the next event."""
        drawn = sha256_hex(f"{self._seed} {self._name} {self._count}".encode())
        self._count += 1
        # A product in place of a remainder: every delay has the same probability, to 1 in 2^64.
        return int(drawn[:_HEX_DIGITS], 16) * (self.bound_ps + 1) >> 4 * _HEX_DIGITS


def key_of_source(name: str) -> str:
    """The key of the bound of the delays of a source."""
    return {START: "jitter.start_skew_ns", COMMAND: "jitter.command_ns"}.get(name, CROSSING)


def link_jitter_ns(topology: Topology, sip: int, port: str) -> float:
    """The bound of the delays of packets at a port of a SIP to others."""
    own = parts_of(topology, sip).values.get(port, {}).get(CROSSING)
    return topology.jitter.crossing_ns if own is None else own


def links_have_jitter(topology: Topology) -> bool:
    """Whether a packet between two SIPs may be late."""
    keys = (key for own in topology.overrides.values() for key, value in own.items() if value)
    return topology.jitter.crossing_ns > 0 or any(key.endswith("crossing_ns") for key in keys)


def jitter_bounds(topology: Topology) -> str:
    """The delays of a topology as a line of a report; empty without any."""
    own = [
        f"{name} {key} {value:g}"
        for name, keys in topology.overrides.items()
        for key, value in keys.items()
        if _is_jitter(key)
    ]
    bounds = [f"{key} {value:g}" for key in _KEYS if (value := getattr(topology.jitter, key))]
    return ", ".join([*bounds, *own])


def nominal_text(topology: Topology, text: str) -> str:
    """The topology file whose values are those of `text`, without jitter."""
    if not jitter_bounds(topology):
        return text
    overrides = {
        name: {key: value for key, value in keys.items() if not _is_jitter(key)}
        for name, keys in topology.overrides.items()
    }
    kept = {name: keys for name, keys in overrides.items() if keys}
    nominal = structs.replace(topology, jitter=JitterConfig(), overrides=kept)
    return to_yaml(nominal.values(), sort_keys=False)


def _is_jitter(key: str) -> bool:
    return key.rpartition(".")[2] in _KEYS
