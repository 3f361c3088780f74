"""Makes the process groups of `torch.distributed` for the backend `ahbm`.

The ranks of the run are started and connected, so they need no store to meet: each has a private
one. Groups are made on all ranks in the same order, members or not, because every rank computes the
addresses of the receive rings.
"""

import functools
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from urllib.parse import parse_qs, urlsplit

import torch
from torch.distributed import distributed_c10d

from kernbench.torch_backend.aten.operators import DEVICE
from kernbench.torch_backend.distributed.process_group import DeviceProcessGroup
from kernbench.torch_backend.distributed.rank_store import RankStore
from kernbench.torch_backend.runtime import pytorch_api
from kernbench.torch_backend.runtime.frame_hook import untraced_methods
from runtime.device import collectives as low_level
from runtime.device.rank.rank_state import ProcessGroup


class _Made:
    """The low-level group of the next process group, and the store of the rank."""

    group: ProcessGroup | None = None
    # PyTorch holds the part of it in C++ alone, which needs this one.
    store: RankStore | None = None


def register_backend(*devices: str) -> None:
    """Make the backend known to `torch.distributed`, with ranks that have met already. Its tensors
    may be on `devices`; objects that it carries are on the first of these.
    """
    untraced_methods(DeviceProcessGroup)
    make = functools.partial(_made_group, torch.device(devices[0]))
    pytorch_api.register_backend(DEVICE, make, devices)
    pytorch_api.register_meeting("env", _meeting)
    pytorch_api.replace(distributed_c10d, pytorch_api.MAKE_GROUP, _on_all_ranks)
    pytorch_api.replace(distributed_c10d, pytorch_api.MAKE_GROUP_WITH_TAG, _not_locally)


def _made_group(device: torch.device, *_: Any) -> DeviceProcessGroup:
    group = _Made.group
    if group is None:
        if not low_level.is_initialized():
            low_level.init_process_group(DEVICE)
        # The group of all ranks of the run.
        group = low_level.new_group()
        assert isinstance(group, ProcessGroup), "every rank is a member of it"
    return DeviceProcessGroup(group, device)


def _meeting(url: str, *_: Any, **__: Any) -> Iterator[tuple[pytorch_api.Store, int, int]]:
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    given = parse_qs(urlsplit(url).query)
    for name, own in (("rank", rank), ("world_size", size)):
        if given.get(name, [str(own)]) != [str(own)]:
            raise ValueError(
                f"init_process_group: {name} is {given[name][0]}, but in this run it is {own}; "
                "omit it"
            )
    _Made.store = RankStore(rank)
    yield _Made.store, rank, size
    raise RuntimeError("the ranks of a run meet once")


def _on_all_ranks(make: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(make)
    def made(
        size: int, rank: int, ranks: Sequence[int], backend: object, *rest: Any, **options: Any
    ) -> Any:
        _check_backend(str(backend))
        rest = (backend, *rest)
        if not ranks:
            return make(size, rank, ranks, *rest, **options)
        if list(ranks) != sorted(ranks):
            raise ValueError(
                f"new_group of ranks {list(ranks)} on {DEVICE!r}: members are numbered in rising "
                "order of their ranks; omit sort_ranks=False"
            )
        tag = options.get("pg_tag")
        if not (tag and pytorch_api.has_group(tag, ranks)):
            created = low_level.new_group(list(ranks))
            _Made.group = created if isinstance(created, ProcessGroup) else None
        try:
            return make(size, rank, ranks, *rest, **options)
        finally:
            _Made.group = None

    return made


def _check_backend(given: str) -> None:
    """`ValueError` for a backend whose ranks would wait for each other in wall time."""
    names = {each.rpartition(":")[2] for each in given.lower().split(",")}
    unknown = sorted(names - {DEVICE, "undefined"})
    if unknown:
        hint = ", or start the script with --as-cuda" if unknown == ["nccl"] else ""
        raise ValueError(
            f"backend {given!r} in a run of kernbench: the ranks are connected by the simulated "
            f"fabric alone; pass {DEVICE!r}, which takes tensors of the host as well{hint}"
        )


def _not_locally(make: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(make)
    def made(*given: Any, use_local_synchronization: bool = False, **options: Any) -> Any:
        if use_local_synchronization:
            raise ValueError(
                f"new_group with use_local_synchronization on {DEVICE!r}: every rank computes the "
                "receive rings of every group, so all ranks call it, members or not"
            )
        return make(*given, **options)

    return made
