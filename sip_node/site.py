"""The host of an LP process that a launcher has started."""

import os
from dataclasses import dataclass
from pathlib import Path

from runtime.core.host_directory import HostDirectory, host_key, machine_key
from runtime.wire.control import LpHost


@dataclass(frozen=True)
class Site:
    """The host of a process of `kernbench node`.

    LPs of other hosts reach it at the address `listen`, which is empty where there are none. Those
    of this host meet in `directory`, of which the process has inherited the lock as the open file
    `lock`, or -1. `command` is a hash of the command line of all processes.
    """

    directory: Path
    listen: str
    command: str
    lock: int = -1

    @property
    def name(self) -> str:
        """The name of the host, for people."""
        name = os.uname().nodename
        return f"{name} ({self.listen})" if self.listen else name

    @property
    def host(self) -> LpHost:
        """The host, as it is sent to the coordinator."""
        return LpHost(self.name, host_key(), machine_key())

    def join(self) -> HostDirectory:
        """Take part in the directory of the host."""
        return HostDirectory(self.directory, None if self.lock < 0 else self.lock)
