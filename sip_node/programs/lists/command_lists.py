"""The command lists of an LP: made when a kernel comes the second time, and used from then on.

The first time, the function of a kernel runs, as most kernels of a program may run once. What comes
again is another PE of the launch with equal arguments, or a later launch. A list is one for all
programs if the function only moves pointers by its program ids; else it is one for those that it
reads; a kernel of another language has one for all ids and addresses that keep its guards. It is
one for all floats among the arguments that the function only passes on, or computes others from.
"""

from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import cast

from msgspec import Struct

from runtime.core.launch_numbers import packed
from runtime.core.program_grid import GridPoint, ProgramGrid
from runtime.core.requests import KernelLaunchMsg, PerPe
from runtime.language.value import Pointer
from sip_node.chip.kernel import PeLaunch
from sip_node.chip.launch_keys import LaunchKey
from sip_node.chip.pe.pe import Pe
from sip_node.programs.lists.arguments import PLAIN, Argument, Key
from sip_node.programs.lists.commands import ListedCommand
from sip_node.programs.lists.key_states import HAS_NONE, SEEN, ChosenVariants, KeyState, of_ids
from sip_node.programs.lists.not_listed import NotListed, ReadsId, ReadsNumber
from sip_node.programs.lists.plain_code import is_own
from sip_node.programs.lists.recording import Places, recorded, recorded_variant

MOST_COMMANDS = 1 << 18
"""The commands of all lists that are kept, some 100 MB; the lists used last are."""
MOST_VARIANTS = 64
"""The lists with guards of a key."""
MOST_KEYS = 1 << 16
"""The keys of kernels in those of launches that are kept."""
MOST_EXCHANGES = 1 << 8
"""The launches of collectives whose arguments are kept with their key; those made last are."""

Programs = Sequence[tuple[GridPoint | None, tuple[ListedCommand, ...]]]


class CommandList(Struct, frozen=True):
    """The commands of a kernel on a PE, for each of its programs: None without a grid. Its pointers
    have `addresses`, and `numbers` are the floats of its arguments. `exchanges` is whether one of
    them sends or receives.
    """

    programs: Programs
    addresses: Sequence[int]
    numbers: Sequence[float]
    exchanges: bool


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
        self.is_guarded = parts[0].is_guarded
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
        self._known: OrderedDict[Key, KeyState] = OrderedDict()
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
        self._next_number = self._next_variant = 0
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
            if kernel.is_guarded:
                assert launch.grid is not None, "a kernel with guards has a grid"
                programs = launch.grid.dealt(len(kernels), len(launch.pes))
                key = self._variants(key, programs, kernel.addresses)
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
        """Whether every kernel of a launch has a list without sends and receives."""
        for index, (place, number) in enumerate(zip(launch.pes, key.kernels, strict=True)):
            kernel: Key = self._numbered.get(number, ())
            if isinstance(kernel, ChosenVariants):
                if kernel.is_complete:
                    continue
                return False
            known = self._known.get(kernel)
            states = [known]
            if known is not None and known.axes:
                programs: Iterable[GridPoint] = (place[::-1],)
                if launch.grid is not None:
                    programs = launch.grid.dealt(index, len(launch.pes))
                states = [self._known.get(of_ids(kernel, known.axes, each)) for each in programs]
            if any(each is None or each.commands is None or each.exchanges for each in states):
                return False
        return True

    def _variants(
        self, key: Key, programs: Iterable[GridPoint], addresses: Sequence[int]
    ) -> ChosenVariants:
        known, chosen = self._known.get(key, HAS_NONE), list[int]()
        for each in programs:
            variant = known.variant(each, addresses)
            chosen.append(-1 if variant is None else variant.number)
        return ChosenVariants(key, tuple(chosen))

    def find(self, pe: Pe, launch: PeLaunch) -> CommandList | None:
        """The list of a kernel that starts on a PE; None for one that has none."""
        if not self._has_list(launch):
            return None
        place = pe.coordinates.sip, launch.command
        parts = self._arguments(place, launch.kernel, launch.arguments)
        if parts is None:
            return None
        grid = None if launch.programs is None else launch.programs.grid
        kernel = _Kernel((launch.pes, launch.cubes), grid, parts)
        programs = list[tuple[GridPoint | None, tuple[ListedCommand, ...]]]()
        exchanges = False
        for program in launch.programs or (None,):
            choose = self._guarded if kernel.is_guarded else self._listed
            known = choose(kernel, pe, launch, program)
            if known is None or known.commands is None:
                return None
            exchanges |= known.exchanges
            programs.append((program, known.commands))
        return CommandList(programs, kernel.addresses, kernel.numbers, exchanges)

    def _waiting(self, known: KeyState | None, launch: PeLaunch) -> KeyState | None:  # noqa: ARG002 - of collectives
        """The next state of a kernel that is not recorded yet; None for all others."""
        return SEEN if known is None else None

    def _has_list(self, launch: PeLaunch) -> bool:
        """Whether a kernel may have a list here: that of a collective has one elsewhere."""
        return launch.thread == "kernels" and not launch.call

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

    def _listed(
        self, kernel: _Kernel, pe: Pe, launch: PeLaunch, program: GridPoint | None
    ) -> KeyState | None:
        """The state of a program of a kernel, which has commands if there is a list."""
        ids = program or (pe.coordinates.pe, pe.coordinates.cube)
        key = kernel.key(self._read_by(kernel))
        known, axes = self._latest(key), tuple[int, ...]()
        if known is not None and known.axes:
            axes = known.axes
            key = of_ids(key, axes, ids)
            known = self._latest(key)
        waiting = self._waiting(known, launch)
        if waiting is not None:
            self._keep(key, waiting)
            return None
        if known is None or known is SEEN or known.first >= 0:
            known, axes = self._record(kernel, pe, launch, program, axes)
            key = kernel.key(self._read_by(kernel))
            if axes:
                self._keep(key, KeyState(axes=axes))
                key = of_ids(key, axes, ids)
            self._keep(key, known)
        return known

    def _guarded(
        self, kernel: _Kernel, pe: Pe, launch: PeLaunch, program: GridPoint | None
    ) -> KeyState | None:
        """The same of a kernel whose lists have guards."""
        assert launch.programs is not None and program is not None, "a kernel of a grid"  # noqa: PT018 - one fact
        key = kernel.key(self._read_by(kernel))
        known = self._latest(key) or SEEN
        if known is SEEN and len(launch.programs.numbers) == 1 and key not in self._known:
            self._keep(key, SEEN)
            return None
        if known is HAS_NONE:
            return None
        variant = known.variant(program, kernel.addresses)
        if variant is None:
            if len(known.variants) == MOST_VARIANTS:
                return None
            self._next_variant += 1
            addresses, numbers = kernel.addresses, len(kernel.numbers)
            variant = recorded_variant(pe, launch, program, addresses, numbers, self._next_variant)
            if variant is None:
                self._keep(key, HAS_NONE)
                return None
            self._keep(key, KeyState(None, (*known.variants, variant)))
        return KeyState(variant.commands)

    def _record(
        self,
        kernel: _Kernel,
        pe: Pe,
        launch: PeLaunch,
        program: GridPoint | None,
        axes: tuple[int, ...],
    ) -> tuple[KeyState, tuple[int, ...]]:
        """The list that the function of a kernel makes, as often as it reads numbers and ids that
        were open until then; and the axes of the ids that it reads.
        """
        while True:
            reads = self._read_by(kernel)
            try:
                return recorded(pe, launch, program, reads, len(kernel.numbers), closed=axes), axes
            except ReadsId as end:
                axes = tuple(sorted({*axes, *end.axes}))
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

    def _latest(self, key: Key) -> KeyState | None:
        """The state of a key, which is used now."""
        known = self._known.get(key)
        if known is not None:
            self._known.move_to_end(key)
        return known

    def _keep(self, key: Key, known: KeyState) -> None:
        before = self._known.pop(key, None)
        self._kept += known.size - (0 if before is None else before.size)
        self._known[key] = known
        while self._kept > MOST_COMMANDS:
            _, oldest = self._known.popitem(last=False)
            self._kept -= oldest.size


class CollectiveLists(CommandLists):
    """The lists of the kernels of collectives: what these issue depends on their arguments alone.

    What arrives is an operand at most. A recording takes a fifth of the time of a kernel, so it has
    to serve several: it is made on the second PE of a call, or in the third call.
    """

    def _waiting(self, known: KeyState | None, launch: PeLaunch) -> KeyState | None:
        """See `CommandLists`."""
        if known is None:
            return KeyState(first=launch.command)
        return SEEN if known.first not in (-1, launch.command) else None

    def _has_list(self, launch: PeLaunch) -> bool:
        """See `CommandLists`."""
        return launch.thread == "collectives" and is_own(getattr(launch.kernel, "__module__", None))

    def _read_by(self, kernel: _Kernel) -> Places:
        """All: a collective that is repeated has no formulas of its numbers."""
        return tuple(range(len(kernel.numbers)))


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


def _argument(each: object, *, is_own: bool) -> Argument | None:
    try:
        return Argument(each, is_own=is_own)
    except NotListed:
        return None
