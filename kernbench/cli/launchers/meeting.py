"""Rendezvous of the processes of a run without a store: the address, and the proof of admission.

With a secret of the site, the process of rank 0 listens at an address that all have or can derive,
and everything on the network is encrypted with keys that follow from the secret. Without one, all
processes are on one host and meet in a private directory; nothing listens on a network.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from kernbench.cli.launchers.address import (
    Master,
    in_brackets,
    is_address_of_this_host,
    parse_master,
    source_address,
)
from kernbench.cli.launchers.place import BY_HAND, SLURM, TORCHRUN, Place, slurm_master
from kernbench.cli.launchers.secret import read_secret, run_id_of
from runtime.core.errors import UsageError
from runtime.core.host_directory import HostDirectory, shared_path
from runtime.wire.environment import MASTER, SECRET_FILE

_ADDRESS = "kernbench/master"
"""Key in the store of torchrun: HOST:PORT of the coordinator."""
_ANY_PORT = "*"


class Store(Protocol):
    """A store of torchrun."""

    def set(self, key: str, value: str, /) -> None:
        """Write a value."""
        ...

    def get(self, key: str, /) -> bytes:
        """Read a value, after a wait until it is there."""
        ...


@dataclass(frozen=True)
class Meeting:
    """The part of this process in a run: its endpoints and its shared directory.

    `control` is the endpoint of the coordinator: the process of rank 0 binds it, the others connect
    to it. `listen` is the address at which this process listens for those of other hosts, empty
    where all are on this one. `directory` is shared by the processes of this host; one of rank 0
    without a secret is in it already, as `joined`. `publish` announces the endpoint that the
    coordinator has bound.
    """

    control: str
    run_id: str
    directory: Path
    listen: str = ""
    joined: HostDirectory | None = None
    publish: Callable[[str], None] = lambda _: None


@dataclass(frozen=True)
class MeetingOptions:
    """The options about the meeting, where they are given."""

    master: str | None = None
    bind: str | None = None
    secret_file: Path | None = None


def meeting_of(
    place: Place,
    options: MeetingOptions,
    environment: Mapping[str, str],
    store: Callable[[], Store],
) -> Meeting:
    """The rendezvous of the process at `place` with the others. Raises `UsageError`."""
    text = options.master or environment.get(MASTER)
    source = "--master" if options.master else MASTER
    master = parse_master(text, source) if text else None
    secret = read_secret(environment, options.secret_file)
    if secret is None:
        return _on_one_host(place, master, options)
    if master is None and place.launcher == SLURM and (derived := slurm_master(environment)):
        master = parse_master(derived, "the variables of Slurm")
    if master is None and place.launcher != TORCHRUN:
        raise UsageError(
            f"where is the process of rank 0? {place.launcher} does not give an address: --master "
            f"or {MASTER}=HOST:PORT, the same for all processes"
        )
    # A port belongs to one run at a time, so the address distinguishes runs.
    run = f"{place.run}\n{master or ''}\n{place.world_size}"
    run_id, directory = run_id_of(secret, run), shared_path(run)
    if master is None:
        return _by_store(place, options, environment, store(), run_id, directory)
    if place.rank == 0:
        address = options.bind or _own_address(master)
        endpoint = f"tcp://{in_brackets(address)}:{master.port}"
        return Meeting(endpoint, run_id, directory, listen=address)
    address = master.address
    endpoint = f"tcp://{in_brackets(address)}:{master.port}"
    return Meeting(endpoint, run_id, directory, listen=options.bind or source_address(address))


def _own_address(master: Master) -> str:
    address = master.address
    if not is_address_of_this_host(address):
        raise UsageError(
            f"the master {master} is {address}, which is no address of this host: rank 0 runs on "
            "the host of the master, or --bind names the address at which it listens"
        )
    return address


def _on_one_host(place: Place, master: Master | None, options: MeetingOptions) -> Meeting:
    """The meeting without a secret."""
    needs = f"a run over several hosts needs a secret: {SECRET_FILE}=FILE (docs/hosts.md)"
    if not place.has_one_host:
        raise UsageError(f"{place.launcher} starts processes on several hosts, and {needs}")
    if options.bind:
        raise UsageError(f"--bind {options.bind} without a secret: nothing listens; {needs}")
    if master is not None and not master.is_loopback:
        raise UsageError(f"the master {master} can be reached from other hosts, and {needs}")
    if place.launcher == BY_HAND and master is None:
        raise UsageError(
            "--rank and --world need --master HOST:PORT, the same for all processes: "
            "127.0.0.1:29400 for processes of this host"
        )
    # The processes that a launcher starts on a host have one parent.
    run = str(master) if master else f"{place.run}\n{os.getppid()}"
    directory = HostDirectory(shared_path(f"{run}\n{place.world_size}"))
    if place.rank == 0 and not directory.lead():
        directory.leave()
        raise UsageError(f"another run on this host has the master {master or place.launcher}")
    return Meeting(
        control=f"ipc://{directory.path}/control.sock",
        run_id=directory.secret(),
        directory=directory.path,
        joined=directory,
    )


def _by_store(
    place: Place,
    options: MeetingOptions,
    environment: Mapping[str, str],
    store: Store,
    run_id: str,
    directory: Path,
) -> Meeting:
    """The meeting of workers of torchrun, whose store has the address but no secret."""
    if place.rank:
        endpoint = store.get(_ADDRESS).decode()
        master = parse_master(endpoint.removeprefix("tcp://"), "the store of torchrun")
        listen = options.bind or source_address(master.address)
        return Meeting(endpoint, run_id, directory, listen=listen)
    # The agent listens at the port of the master; the coordinator takes a free one.
    address = options.bind or _own_address(Master(environment["MASTER_ADDR"], 1))
    return Meeting(
        control=f"tcp://{in_brackets(address)}:{_ANY_PORT}",
        run_id=run_id,
        directory=directory,
        listen=address,
        publish=lambda bound: store.set(_ADDRESS, bound),
    )
