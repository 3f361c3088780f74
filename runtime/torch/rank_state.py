"""The state of a rank behind `torch`. A context variable distinguishes the ranks of one process."""

from collections import Counter
from contextvars import ContextVar
from dataclasses import dataclass, field

from runtime.ccl.call_signature import ranks_text
from runtime.ccl.config import CclConfig
from runtime.ccl.ring_allocator import QueueTableSpec, RingAllocator
from runtime.core.garbage_collection import refuse_in_collection
from runtime.core.requests import Device, Handle
from runtime.model.addresses import AddressMap
from runtime.model.topology import Topology
from runtime.torch.tensor_memory import TensorMemory


@dataclass(eq=False, repr=False)
class ProcessGroup:
    """A process group of which this rank is a member.

    `rank` is its rank in the group, `sips` are the global ranks of all members. `algorithm` is a
    name of `ccl.yaml` or `auto`; `tables` are the queue tables of the algorithms that the group may
    run, with the table of users' kernels first. `default` is the default group, None if it is this
    one. `destroyed` is set by `destroy_process_group`. `calls` counts the collectives of the group,
    `messages` the sends and receives between each pair of global ranks.
    """

    name: str
    rank: int
    sips: tuple[int, ...]
    algorithm: str
    tables: dict[str, QueueTableSpec]
    default: "ProcessGroup | None" = None
    destroyed: bool = False
    calls: int = 0
    messages: Counter[tuple[int, int]] = field(default_factory=Counter[tuple[int, int]])

    def __repr__(self) -> str:
        """The title and the algorithm."""
        return f"<ProcessGroup {self.title}, algorithm {self.algorithm}>"

    @property
    def title(self) -> str:
        """Name and ranks: the name alone depends on the order in which a rank makes its groups."""
        return self.name if self.default is None else f"{self.name} of {ranks_text(self.sips)}"

    @property
    def world_size(self) -> int:
        """The number of ranks in the group."""
        return len(self.sips)

    @property
    def base(self) -> QueueTableSpec:
        """The queue table of users' kernels: that of the group's first algorithm."""
        return next(iter(self.tables.values()))


@dataclass
class RankState:
    """One rank: its device, the memory of its tensors, and its default process group once it is
    initialised.

    `world_size` is the number of ranks of the run. `groups` counts the process groups besides the
    default one, which all ranks make in the same order; `tensors` counts the tensors, which gives
    each a name. `installs` are the installations of queue tables, by the name of the table.
    `generator` is the stream of random numbers, from its first use on.
    """

    rank: int
    device: Device
    topology: Topology
    ccl: CclConfig
    data: bool
    addresses: AddressMap = field(init=False)
    memory: TensorMemory = field(init=False)
    ring_allocator: RingAllocator = field(init=False)
    world_size: int = 1
    process_group: ProcessGroup | None = None
    groups: int = 0
    tensors: int = 0
    installs: dict[str, Handle] = field(default_factory=dict[str, Handle])
    generator: object = None

    def __post_init__(self) -> None:
        self.addresses = AddressMap(self.topology)
        self.memory = TensorMemory(self.topology, self.rank, self.addresses)
        self.ring_allocator = RingAllocator(self.rank, self.topology, self.ccl)


# Each rank program is a greenlet with its own context, so the variable has one value per rank even
# where several ranks share a process.
current_rank: ContextVar[RankState] = ContextVar("current_rank")


def running_rank() -> RankState:
    """The rank whose program is running; `RuntimeError` outside a rank, and in a finaliser that the
    garbage collector runs.
    """
    refuse_in_collection()
    try:
        return current_rank.get()
    except LookupError:
        raise RuntimeError(
            "no rank is running here: start the script with `kernbench --sips N script.py`, or "
            "use torch.multiprocessing.spawn"
        ) from None
