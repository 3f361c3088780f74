"""What `torch` knows about the rank that is running. A context variable tells ranks of one process apart."""

from collections import Counter
from contextvars import ContextVar
from dataclasses import dataclass, field

from runtime.ccl.call_signature import ranks_text
from runtime.ccl.config import CclConfig
from runtime.ccl.ring_allocator import QueueTableSpec, RingAllocator
from runtime.core.requests import Device
from runtime.model.addresses import AddressMap
from runtime.model.allocation import SipMemories, VirtualAllocator
from runtime.model.topology import Topology


@dataclass(eq=False, repr=False)
class ProcessGroup:
    """A process group that this rank is a member of.

    `rank` is this rank's in the group, `sips` are the global ranks of all members. `algorithm` is a name of `ccl.yaml` or
    `auto`; `tables` are the queues of the algorithms that it may run, the first one those that kernels of users see.
    `default` is the default group, unless it is this one; `left` says that this rank has destroyed the group. `calls` counts
    the collectives of the group, `messages` those sent to and received from each global rank.
    """

    name: str
    rank: int
    sips: tuple[int, ...]
    algorithm: str
    tables: dict[str, QueueTableSpec]
    default: "ProcessGroup | None" = None
    left: bool = False
    calls: int = 0
    messages: Counter[tuple[int, int]] = field(default_factory=Counter[tuple[int, int]])

    def __repr__(self) -> str:
        """The title and the algorithm."""
        return f"<ProcessGroup {self.title}, algorithm {self.algorithm}>"

    @property
    def title(self) -> str:
        """Name and ranks: groups that ranks have made in another order have other names."""
        return self.name if self.default is None else f"{self.name} of {ranks_text(self.sips)}"

    @property
    def world_size(self) -> int:
        """How many ranks the group has."""
        return len(self.sips)

    @property
    def base(self) -> QueueTableSpec:
        """The queues that kernels of users see."""
        return next(iter(self.tables.values()))


@dataclass
class RankState:
    """One rank: its device, the memories of its SIP, and its default process group once there is one.

    `groups` counts the process groups that all ranks have made beside the default one.
    """

    rank: int
    device: Device
    topology: Topology
    ccl: CclConfig
    data: bool
    memories: SipMemories = field(init=False)
    addresses: AddressMap = field(init=False)
    virtual: VirtualAllocator = field(init=False)
    ring_allocator: RingAllocator = field(init=False)
    process_group: ProcessGroup | None = None
    groups: int = 0
    tensors: int = 0

    def __post_init__(self) -> None:
        self.memories = SipMemories(self.topology, self.rank)
        self.addresses = AddressMap(self.topology)
        self.virtual = VirtualAllocator(f"sip {self.rank}")
        self.ring_allocator = RingAllocator(self.rank, self.topology, self.ccl)


current_rank: ContextVar[RankState] = ContextVar("current_rank")


def running_rank() -> RankState:
    """The rank whose program is running; `RuntimeError` outside of one."""
    try:
        return current_rank.get()
    except LookupError:
        raise RuntimeError(
            "no rank is running here: start the script with `kernbench --sips N script.py`, or use torch.multiprocessing.spawn"
        ) from None
