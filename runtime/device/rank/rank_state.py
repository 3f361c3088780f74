"""The state of a rank behind `torch`. A context variable distinguishes the ranks of one process."""

from collections import Counter
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from threading import current_thread, main_thread

from runtime.ccl.call_signature import ranks_text
from runtime.ccl.config import CclConfig
from runtime.ccl.ring_allocator import InstallPlans, QueueTableSpec, RingAllocator
from runtime.core.device import DEFAULT_STREAM, Device, Handle
from runtime.core.garbage_collection import refuse_in_collection
from runtime.core.program_clock import ProgramClock
from runtime.device.rank.tensor_memory import TensorMemory
from runtime.model.addresses import AddressMap
from runtime.model.parts.usable_pes import UsablePes
from runtime.model.topology import Topology

SLOW_CALL_S = 0.5
"""A collective is slow when its rank has computed in Python for as long before the call."""
_SLOW_CALLS_KEPT = 8


@dataclass(eq=False, repr=False)
class ProcessGroup:
    """A process group of which this rank is a member.

    `rank` is its rank in the group, `sips` are the global ranks of all members. `algorithm` is a
    name of `ccl.yaml` or `auto`; `tables` are the queue tables of the algorithms that the group may
    run, with the table of users' kernels first. `default` is the default group, None if it is this
    one. `destroyed` is set by `destroy_process_group`. `calls` counts the collectives of the group,
    `messages` the sends and receives by (source, target, tag), with global ranks. `timeout_s` is
    the wall time that a rank may keep the others waiting, 0 for the limit of the run; of a group
    with a limit, `open_calls` has the number, name and handle of the collectives that are not
    complete, `called_s` the clock of the program at the latest call, and `slow_calls` the number
    and name of the latest calls before which the program computed for `SLOW_CALL_S` or longer, with
    that time.
    """

    name: str
    rank: int
    sips: tuple[int, ...]
    algorithm: str
    tables: dict[str, QueueTableSpec]
    default: "ProcessGroup | None" = None
    destroyed: bool = False
    calls: int = 0
    timeout_s: float = 0.0
    called_s: float = 0.0
    open_calls: tuple[tuple[int, str, Handle], ...] = ()
    slow_calls: tuple[tuple[int, str, float], ...] = ()
    messages: Counter[tuple[int, int, int]] = field(default_factory=Counter[tuple[int, int, int]])

    def __repr__(self) -> str:
        """The title and the algorithm."""
        return f"<ProcessGroup {self.title}, algorithm {self.algorithm}>"

    def opened(self, collective: str, handle: Handle, clock: ProgramClock) -> None:
        """Record the latest call, if the group has a limit."""
        if not self.timeout_s:
            return
        # Other tuples: a thread that reports the calls may be reading the former ones.
        self.open_calls = (
            *(call for call in self.open_calls if not call[2].done),
            (self.calls, collective, handle),
        )
        computed_s, self.called_s = clock.total_s - self.called_s, clock.total_s
        if computed_s >= SLOW_CALL_S:
            slow = (*self.slow_calls, (self.calls, collective, computed_s))
            self.slow_calls = slow[-_SLOW_CALLS_KEPT:]

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


class _AnnouncedKernel:
    """A kernel that calls `begin` first. It does more than its commands, so it has no list."""

    def __init__(self, begin: Callable[[], object], kernel: Callable[..., object]) -> None:
        self._begin, self._kernel = begin, kernel

    def __call__(self, *arguments: object) -> object:
        self._begin()
        return self._kernel(*arguments)


@dataclass
class RankState:
    """One rank: its device, the memory of its tensors, and its default process group once it is
    initialised.

    `world_size` is the number of ranks of the run, by default one per SIP. `groups` counts the
    process groups besides the default one, which all ranks make in the same order; `tensors` counts
    the tensors, which gives each a name, and `launches` those of kernels. `installs` are the
    installations of queue tables, by the name of the table, and `mappings` the latest mapping of a
    tensor for a send or receive, by the name of the tensor. `pes` are those that are not down.
    `generator` is the stream of random
    numbers, from its first use on. `has_streams` is whether the program has made a stream.
    `at_begin`, if it is set, is called when a kernel begins that is launched meanwhile.
    `limited_groups` are the groups with a time limit. `clock` runs while the program does. `at_end`
    is called in order when the program has returned.
    """

    rank: int
    device: Device
    topology: Topology
    ccl: CclConfig
    data: bool
    plans: InstallPlans = field(default_factory=InstallPlans)
    addresses: AddressMap = field(init=False)
    pes: UsablePes = field(init=False)
    memory: TensorMemory = field(init=False)
    ring_allocator: RingAllocator = field(init=False)
    world_size: int = 0
    process_group: ProcessGroup | None = None
    groups: int = 0
    tensors: int = 0
    launches: int = 0
    installs: dict[str, Handle] = field(default_factory=dict[str, Handle])
    has_streams: bool = False
    at_begin: Callable[[], object] | None = None
    mappings: dict[str, Handle] = field(default_factory=dict[str, Handle])
    generator: object = None
    limited_groups: tuple[ProcessGroup, ...] = ()
    clock: ProgramClock = field(default_factory=ProgramClock)
    at_end: list[Callable[[], None]] = field(default_factory=list[Callable[[], None]])

    def __post_init__(self) -> None:
        self.world_size = self.world_size or self.topology.sips
        self.addresses = AddressMap(self.topology)
        self.pes = UsablePes(self.topology, self.rank)
        self.memory = TensorMemory(
            self.topology, self.rank, self.addresses, self.device.synchronize
        )
        self.ring_allocator = RingAllocator(self.rank, self.topology, self.ccl, self.plans)

    def announced(self, kernel: Callable[..., object]) -> Callable[..., object]:
        """A kernel that calls `at_begin` first, in no simulated time."""
        begin = self.at_begin
        return kernel if begin is None else _AnnouncedKernel(begin, kernel)

    def hold(self, handle: Handle, tensors: Sequence[object]) -> None:
        """Keep the memory of `tensors` until the command is answered, where another stream could
        use it before.

        Memory keeps its name in the order of commands, so the results would be the same. But a new
        tensor in freed memory would make its stream wait for this command. In the default stream
        alone, what uses the memory again comes later anyway.
        """
        if self.has_streams or handle.stream != DEFAULT_STREAM:
            handle.holds = tuple(tensors)


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
        raise RuntimeError(_absence()) from None


def _absence() -> str:
    """Why no rank is running, and what to do."""
    thread = current_thread()
    if thread is not main_thread():
        return (
            f"thread {thread.name!r} is not that of a rank, which alone uses the device: let other "
            "threads work on tensors of the CPU, and copy them to the device in the main thread"
        )
    return (
        "no rank is running here: start the script with `kernbench --sips N script.py`, or use "
        "torch.multiprocessing.spawn"
    )
