"""The numbers and hosts of the LPs of a run, from what the processes report when they join."""

from collections.abc import Mapping
from dataclasses import dataclass

from runtime.core.errors import ProtocolError
from runtime.wire.control import Hello


@dataclass(frozen=True)
class Placement:
    """The LPs of a run: `ranks[k]` is the number with which the process of LP k has joined.

    `hosts[k]` is its host, and `names` are the names of the hosts, which are `machines` machines.
    """

    ranks: tuple[int, ...]
    hosts: tuple[int, ...]
    names: tuple[str, ...]
    machines: int = 1

    @classmethod
    def on_one_host(cls, lps: int) -> "Placement":
        """LPs that this process has started."""
        return cls(tuple(range(lps)), (0,) * lps, ("",))

    @property
    def lp_of(self) -> dict[int, int]:
        """The LP of the process that has joined with a number."""
        return {rank: lp for lp, rank in enumerate(self.ranks)}

    def host_of(self, lp: int) -> str:
        """The name of the host of an LP; empty for an LP that this process has started."""
        return self.names[self.hosts[lp]]


def place(hellos: Mapping[int, Hello]) -> Placement:
    """The placement of the processes which have sent `hellos`, by the number in them.

    LPs are numbered by host, then by rank: neighbours in a ring share a host, in every order in
    which a launcher deals ranks. Hosts come in the order of their first ranks. Raises
    `ProtocolError` if only some of the processes have been started by a launcher, or with different
    command lines.
    """
    ranks = sorted(hellos)
    hosts = {rank: hello.host for rank in ranks if (hello := hellos[rank]).host is not None}
    if not hosts:
        return Placement.on_one_host(len(ranks))
    keys: dict[str, int] = {}
    first = hellos[ranks[0]]
    for rank in ranks:
        host, command = hellos[rank].host, hellos[rank].command
        if host is None or command != first.command:
            raise ProtocolError(
                f"rank {rank}", "it has been started with another command line than rank 0"
            )
        keys.setdefault(host.key, len(keys))
    of_rank = {rank: keys[host.key] for rank, host in hosts.items()}
    # Neighbours of a ring exchange most messages, and messages within a host cost least.
    ordered = sorted(ranks, key=lambda rank: (of_rank[rank], rank))
    firsts = [next(rank for rank in ordered if of_rank[rank] == host) for host in range(len(keys))]
    return Placement(
        tuple(ordered),
        tuple(of_rank[rank] for rank in ordered),
        tuple(hosts[rank].name for rank in firsts),
        len({host.machine for host in hosts.values()}),
    )
