"""What `torch` knows about the rank that is running. A context variable tells ranks of one process apart."""

from contextvars import ContextVar
from dataclasses import dataclass, field

from runtime.ccl.config import CclConfig
from runtime.ccl.group import Group
from runtime.ccl.plan import InstallPlan
from runtime.hardware.addresses import AddressMap
from runtime.hardware.allocation import SipMemories, VirtualAllocator
from runtime.hardware.topology import Topology
from runtime.requests import Device


@dataclass
class ProcessGroup:
    """An initialised process group of a rank: its algorithm and its installed queues."""

    group: Group
    plan: InstallPlan


@dataclass
class RankState:
    """One rank: its device, the memories of its SIP, and its process group once there is one.

    `installed` is the group whose queues are on the PEs; they outlive it.
    """

    rank: int
    device: Device
    topology: Topology
    ccl: CclConfig
    data: bool
    memories: SipMemories = field(init=False)
    addresses: AddressMap = field(init=False)
    virtual: VirtualAllocator = field(init=False)
    process_group: ProcessGroup | None = None
    installed: ProcessGroup | None = None
    tensors: int = 0

    def __post_init__(self) -> None:
        self.memories = SipMemories(self.topology, self.rank)
        self.addresses = AddressMap(self.topology)
        self.virtual = VirtualAllocator(f"sip {self.rank}")


current_rank: ContextVar[RankState] = ContextVar("current_rank")


def running_rank() -> RankState:
    """The rank whose program is running; `RuntimeError` outside of one."""
    try:
        return current_rank.get()
    except LookupError:
        raise RuntimeError(
            "no rank is running here: start the script with `kernbench --sips N script.py`, or use torch.multiprocessing.spawn"
        ) from None
