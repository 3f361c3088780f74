"""The command lists of an LP: made when a kernel comes the second time, and used from then on.

The first time, the function of a kernel runs, as most kernels of a program may run once. What comes
again is another PE of the launch with equal arguments, or a later launch. A list is one for all
programs if the function only moves pointers by its program ids; else it is one for these ids. It is
one for all floats among the arguments that the function only passes on, or computes others from.
"""

from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable, Iterable, Sequence
from contextvars import copy_context
from typing import cast

from msgspec import Struct

from runtime.core.launch_numbers import packed
from runtime.core.program_grid import GridPoint, ProgramGrid
from runtime.core.requests import KernelLaunchMsg, PerPe
from runtime.language.caller import call_kernel
from runtime.language.chain import VectorRegisters
from runtime.language.program_ids import ProgramIds
from runtime.language.running import current_pe
from runtime.language.value import Pointer
from sip_node.chip.kernel import PeLaunch
from sip_node.chip.launch_keys import LaunchKey
from sip_node.chip.pe.pe import Pe
from sip_node.programs.kernel_faults import KernelFaults
from sip_node.programs.kernel_memory import KernelScratch
from sip_node.programs.lists.arguments import PLAIN, Argument, Key
from sip_node.programs.lists.commands import ListedCommand
from sip_node.programs.lists.not_listed import NotListed, ReadsId, ReadsNumber
from sip_node.programs.lists.opened_arguments import OpenedArguments
from sip_node.programs.lists.plain_code import is_own
from sip_node.programs.lists.recorder import CommandRecorder

MOST_COMMANDS = 1 << 18
"""The commands of all lists that are kept, some 100 MB; the lists used last are."""
MOST_OF_A_LIST = 1 << 13
"""The commands of a list: a longer kernel takes its time in its commands, and not in its start."""

MOST_KEYS = 1 << 14
"""The keys of kernels in those of launches that are kept."""
MOST_EXCHANGES = 1 << 8
"""The launches of collectives whose arguments are kept with their key; those made last are."""

Programs = Sequence[tuple[GridPoint | None, tuple[ListedCommand, ...]]]


class CommandList(Struct, frozen=True):
    """The commands of a kernel on a PE, for each of its programs: None without a grid. Its pointers
    have `addresses`, and `numbers` are the floats of its arguments.
    """

    programs: Programs
    addresses: Sequence[int]
    numbers: Sequence[float]


class _KeyState(Struct, frozen=True):
    """The state of a key: its commands, if it has a list."""

    commands: tuple[ListedCommand, ...] | None = None


# A kernel that has come once; one with a list for each program; one that no list holds.
_SEEN, _DIFFERS, _HAS_NONE = _KeyState(), _KeyState(), _KeyState()

Places = tuple[int, ...]
"""The places of numbers among those of the arguments."""


class _Kernel:
    """A kernel with its arguments: equal to another one, but for addresses and numbers, if both
    have one `shape`.
    """

    def __init__(
        self, counts: tuple[int, int], grid: ProgramGrid | None, parts: Sequence[Argument]
    ) -> None:
        key = (*counts, *[each.key for each in parts])
        self.shape: Key = key if grid is None else (grid.lengths, *key)
        self.addresses = [address for each in parts for address in each.addresses]
        self.numbers = [number for each in parts for number in each.numbers]
        self.reads_all = any(each.reads_all for each in parts)
        # The function and the parts with numbers: what is read hardly depends on other parts.
        self.reader = (parts[0].key, *[each.key for each in parts[1:] if each.numbers])

    def key(self, reads: Places) -> Key:
        """The key of its list, of a kernel that reads the numbers with places in `reads`."""
        if not reads:
            return self.shape
        return self.shape, reads, packed([self.numbers[place] for place in reads])


class CommandLists:
    """The lists of the kernels of an LP."""

    def __init__(self) -> None:
        self._known: OrderedDict[Key, _KeyState] = OrderedDict()
        # The numbers that kernels of a reader read, of those that read some: all that any of its
        # recordings has read, so that a list of a key depends on no other numbers.
        self._reads: OrderedDict[Key, Places] = OrderedDict()
        # The number of commands of all lists, and one for each key.
        self._kept = 0
        # The parts of keys of the launches of one command, by the identity of the arguments.
        self._command = (-1, -1)
        self._parts: dict[int, Argument | None] = {}
        # A number for each key of a kernel of a launch, which is compared in its place.
        self._numbers: dict[Key, int] = {}
        self._numbered: dict[int, Key] = {}
        self._next_number = 0
        # The last launches of collectives, with their keys.
        self._exchanges: OrderedDict[Key, tuple[KernelLaunchMsg, LaunchKey | None]] = OrderedDict()

    def launch_key(self, sip: int, command: int, launch: KernelLaunchMsg) -> LaunchKey | None:
        """The key of a launch, from those of its kernels; None where one of them has none."""
        same = launch.name, launch.pes, launch.grid, len(launch.arguments)
        return self._launch_key((sip, command), launch, same, are_read=False)

    def exchange_key(self, sip: int, command: int, launch: KernelLaunchMsg) -> LaunchKey | None:
        """The key of a collective; None for one whose code is not ours, which may read an address
        or an element.
        """
        if launch.grid is not None or not is_own(getattr(launch.kernel, "__module__", None)):
            return None
        # Loops make equal calls: of one with the arguments of an earlier one, no key is made.
        place = sip, launch.name, _first_address(launch)
        before, key = self._exchanges.get(place, (None, None))
        if before is None or not _is_equal_launch(launch, before):
            same = launch.name, launch.pes, launch.queues, len(launch.arguments)
            key = self._launch_key((sip, command), launch, same, are_read=True)
            self._exchanges[place] = launch, key
            if len(self._exchanges) > MOST_EXCHANGES:
                self._exchanges.popitem(last=False)
        return key

    def _launch_key(
        self,
        command: tuple[int, int],
        launch: KernelLaunchMsg,
        same: Hashable,
        *,
        are_read: bool,
    ) -> LaunchKey | None:
        """The key of a launch, of which `same` is equal; with `are_read` all its numbers are."""
        if len(self._numbers) > MOST_KEYS:
            self._numbers.clear()
            self._numbered.clear()
            self._exchanges.clear()
        kernels, addresses = list[int](), list[tuple[int, ...]]()
        numbers = list[bytes]()
        pes_of = Counter(cube for cube, _ in launch.pes)
        for place in launch.pes:
            arguments = [
                each.values[place] if isinstance(each, PerPe) else each for each in launch.arguments
            ]
            parts = self._arguments(command, launch.kernel, arguments)
            if parts is None:
                return None
            kernel = _Kernel((pes_of[place[0]], len(pes_of)), launch.grid, parts)
            count = len(kernel.numbers)
            key = kernel.key(tuple(range(count)) if are_read else self._read_by(kernel))
            number = self._numbers.get(key)
            if number is None:
                number = self._numbers[key] = self._next_number
                self._numbered[number] = key
                self._next_number += 1
            kernels.append(number)
            addresses.append(tuple(kernel.addresses))
            numbers.append(b"" if are_read else packed(kernel.numbers))
        return LaunchKey(tuple(kernels), same, tuple(addresses), tuple(numbers))

    def holds(self, key: LaunchKey, launch: KernelLaunchMsg) -> bool:
        """Whether every kernel of a launch has a list."""
        for index, (place, number) in enumerate(zip(launch.pes, key.kernels, strict=True)):
            kernel: Key = self._numbered.get(number, ())
            states = [self._known.get(kernel)]
            if states[0] is _DIFFERS:
                programs: Iterable[GridPoint] = (place,)
                if launch.grid is not None:
                    programs = launch.grid.dealt(index, len(launch.pes))
                states = [self._known.get((*kernel, each)) for each in programs]
            if any(state is None or state.commands is None for state in states):
                return False
        return True

    def find(self, pe: Pe, launch: PeLaunch) -> CommandList | None:
        """The list of a kernel that starts on a PE; None for one that has none."""
        # A kernel that sends or receives depends on its peers.
        if launch.thread != "kernels" or launch.call:
            return None
        place = pe.coordinates.sip, launch.command
        parts = self._arguments(place, launch.kernel, launch.arguments)
        if parts is None:
            return None
        grid = None if launch.programs is None else launch.programs.grid
        kernel = _Kernel((launch.pes, launch.cubes), grid, parts)
        programs = list[tuple[GridPoint | None, tuple[ListedCommand, ...]]]()
        for program in launch.programs or (None,):
            commands = self._commands(kernel, pe, launch, program)
            if commands is None:
                return None
            programs.append((program, commands))
        return CommandList(programs, kernel.addresses, kernel.numbers)

    def _arguments(
        self,
        command: tuple[int, int],
        kernel: Callable[..., object],
        arguments: Sequence[object],
    ) -> list[Argument] | None:
        """The kernel and its arguments, as parts of a key; None for one that has no key.

        `command` is the SIP and the number of the command, which keeps the arguments.
        """
        if command != self._command:
            self._command, self._parts = command, {}
        own, parts = is_own(getattr(kernel, "__module__", None)), list[Argument]()
        for each in (kernel, *arguments):
            number = id(each)
            if number not in self._parts:
                self._parts[number] = _argument(each, is_own=own)
            part = self._parts[number]
            if part is None:
                return None
            parts.append(part)
        return parts

    def _commands(
        self, kernel: _Kernel, pe: Pe, launch: PeLaunch, program: GridPoint | None
    ) -> tuple[ListedCommand, ...] | None:
        place = program or (pe.coordinates.cube, pe.coordinates.pe)
        key = kernel.key(self._read_by(kernel))
        known, differs = self._latest(key), False
        if known is _DIFFERS:
            key, differs = (*key, place), True
            known = self._latest(key)
        if known is None:
            self._keep(key, _SEEN)
            return None
        if known is _SEEN:
            known = self._record(kernel, pe, launch, program, reads_ids=differs)
            if known is _DIFFERS:
                known, differs = self._record(kernel, pe, launch, program, reads_ids=True), True
            key = kernel.key(self._read_by(kernel))
            if differs:
                self._keep(key, _DIFFERS)
                key = (*key, place)
            self._keep(key, known)
        return known.commands

    def _record(
        self,
        kernel: _Kernel,
        pe: Pe,
        launch: PeLaunch,
        program: GridPoint | None,
        *,
        reads_ids: bool,
    ) -> _KeyState:
        """The list that the function of a kernel makes, as often as it reads numbers that were open
        until then.
        """
        while True:
            reads = self._read_by(kernel)
            try:
                return _recorded(
                    pe, launch, program, reads, len(kernel.numbers), reads_ids=reads_ids
                )
            except ReadsNumber as end:
                self._reads[kernel.reader] = tuple(sorted({*reads, *end.places}))
                if len(self._reads) > MOST_KEYS:
                    self._reads.popitem(last=False)

    def _read_by(self, kernel: _Kernel) -> Places:
        """The places of the numbers that a kernel reads."""
        if not kernel.numbers:
            return ()
        if kernel.reads_all:
            return tuple(range(len(kernel.numbers)))
        return self._reads.get(kernel.reader, ())

    def _latest(self, key: Key) -> _KeyState | None:
        """The state of a key, which is used now."""
        known = self._known.get(key)
        if known is not None:
            self._known.move_to_end(key)
        return known

    def _keep(self, key: Key, known: _KeyState) -> None:
        before = self._known.pop(key, None)
        self._kept += _size(known) - (0 if before is None else _size(before))
        self._known[key] = known
        while self._kept > MOST_COMMANDS:
            _, oldest = self._known.popitem(last=False)
            self._kept -= _size(oldest)


def _first_address(launch: KernelLaunchMsg) -> int:
    """The address of the first pointer among the arguments of the first PE; -1 without one."""
    for each in launch.arguments:
        value = next(iter(each.values.values()), None) if isinstance(each, PerPe) else each
        if isinstance(value, Pointer):
            return value.address
    return -1


def _is_equal_launch(launch: KernelLaunchMsg, other: KernelLaunchMsg) -> bool:
    """Whether launches have one key, and the same addresses."""
    return (
        launch.kernel is other.kernel
        and (launch.pes, launch.queues) == (other.pes, other.queues)
        and len(launch.arguments) == len(other.arguments)
        and all(map(_is_equal_argument, launch.arguments, other.arguments))
    )


def _is_equal_argument(each: object, other: object) -> bool:
    if each is other:
        return True
    kind = type(each)
    if kind is not type(other):
        return False
    if isinstance(each, PerPe) and isinstance(other, PerPe):
        return tuple(each.values) == tuple(other.values) and all(
            map(_is_equal_argument, each.values.values(), other.values.values())
        )
    if isinstance(each, Pointer) and isinstance(other, Pointer):
        return each.address == other.address and each.dtype is other.dtype
    if issubclass(kind, tuple):
        one, two = cast("tuple[object, ...]", each), cast("tuple[object, ...]", other)
        return len(one) == len(two) and all(map(_is_equal_argument, one, two))
    return kind in PLAIN and each == other


def _size(known: _KeyState) -> int:
    return 1 if known.commands is None else 1 + len(known.commands)


def _argument(each: object, *, is_own: bool) -> Argument | None:
    try:
        return Argument(each, is_own=is_own)
    except NotListed:
        return None


def _recorded(
    pe: Pe,
    launch: PeLaunch,
    program: GridPoint | None,
    reads: Places,
    numbers: int,
    *,
    reads_ids: bool,
) -> _KeyState:
    """The list that the function of a kernel makes in a recorder; of its `numbers`, those with
    places in `reads` are not open. With `reads_ids`, it is the list for the ids of its program.

    It has none if it fails: then it runs again on each PE, with the error of that PE. Open numbers
    and ids may be why it fails.
    """
    chip, (_, cube, number) = pe.chip, pe.coordinates
    topology, math, dealt = chip.topology, chip.topology.pe.math, launch.programs
    faults = KernelFaults(launch.name, pe.coordinates)
    grid = None if dealt is None else dealt.grid
    ids = ProgramIds((number, cube), (launch.pes, launch.cubes), grid)
    ids.program = program
    recorder = CommandRecorder(
        KernelScratch(topology, launch.thread, 0, faults),
        topology.tile,
        VectorRegisters(math.registers, math.lanes, 0),
        ids,
        MOST_OF_A_LIST,
        reads_ids=reads_ids,
    )

    opened = OpenedArguments(reads)
    kernel, *arguments = [opened.of(each) for each in (launch.kernel, *launch.arguments)]
    assert opened.numbers == numbers, "numbers are opened in the order of the keys"

    def run() -> None:
        current_pe.set(recorder)
        call_kernel(launch.name, pe.coordinates, kernel, arguments)

    try:
        copy_context().run(run)
    except ReadsNumber:
        raise
    except ReadsId:
        return _DIFFERS
    except NotListed:
        return _HAS_NONE
    except Exception as error:
        # A kernel may raise anything, and will raise it again.
        if len(reads) < numbers:
            raise ReadsNumber(frozenset(range(numbers))) from error
        return _HAS_NONE if reads_ids else _DIFFERS
    return _KeyState(recorder.commands())
