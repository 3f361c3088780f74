"""The environment variables of a rank, as `torchrun` sets them.

They describe one rank, and several ranks may share a process: then each rank sees, sets and deletes
its own in `os.environ`. All other variables belong to the process.
"""

import os
from collections.abc import Iterator, Sequence
from contextvars import ContextVar

from runtime.wire.control import Peers
from runtime.wire.environment import RankPlace, rank_environment

own_variables: ContextVar[dict[str, str]] = ContextVar("own_variables")
"""The variables of the rank that runs, as it has changed them."""


def rank_place(peers: Peers, rank: int, world_size: int) -> RankPlace:
    """Where a rank of a run stands, which has SIP number `rank`."""
    host_of = {
        sip: host
        for sips, host in zip(peers.sips_of_lp, peers.hosts, strict=True)
        for sip in sips
        if sip < world_size
    }
    beside = sorted(other for other, host in host_of.items() if host == host_of[rank])
    return RankPlace(
        rank=rank,
        world_size=world_size,
        local_rank=beside.index(rank),
        local_world_size=len(beside),
        host=host_of[rank],
        hosts=len(set(host_of.values())),
    )


def provide_variables(places: Sequence[RankPlace], *, script: bool) -> None:
    """Set the variables of the ranks of this process, before their programs start."""
    if not places:
        return
    variables = rank_environment(places[0], script=script)
    if not script or places[0].hosts > 1:
        # A program that spawns its ranks sets the address itself, as PyTorch requires; a launcher
        # on several hosts does.
        variables |= {name: os.environ[name] for name in _ADDRESS if name in os.environ}
    if len(places) == 1:
        os.environ.update(variables)
    else:
        os.environ.update({name: variables[name] for name in _ADDRESS})
        # In place: modules hold references to `os.environ`.
        os.environ.__class__ = _SharedEnviron


_ADDRESS = ("MASTER_ADDR", "MASTER_PORT")
_OF_A_RANK = frozenset(rank_environment(RankPlace.on_one_host(0, 1), script=True)) - {*_ADDRESS}


# No other class can take its place.
class _SharedEnviron(os._Environ[str]):  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
    """`os.environ` in a process with several ranks."""

    def __getitem__(self, key: str) -> str:
        own = own_variables.get(None)
        if own is None or key not in _OF_A_RANK:
            return super().__getitem__(key)
        return own[key]

    def __setitem__(self, key: str, value: str) -> None:
        own = own_variables.get(None)
        if own is None or key not in _OF_A_RANK:
            super().__setitem__(key, value)
        else:
            own[key] = value

    def __delitem__(self, key: str) -> None:
        own = own_variables.get(None)
        if own is None or key not in _OF_A_RANK:
            super().__delitem__(key)
        else:
            del own[key]

    def __iter__(self) -> Iterator[str]:
        own = own_variables.get(None)
        if own is None:
            yield from super().__iter__()
        else:
            yield from (key for key in super().__iter__() if key not in _OF_A_RANK)
            yield from (key for key in own if key in _OF_A_RANK)

    def __len__(self) -> int:
        return sum(1 for _ in self)
