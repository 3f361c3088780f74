"""Mutants of command lists: what a key forgets, what a place forgets, and what a list leaves out.

A run with lists must be one without them, so no check of times notices these: tests compare both.
"""

from tests.mutants.mutant import Mutant

ARGUMENTS = "sip_node/programs/lists/arguments.py"
CODE = "sip_node/programs/lists/plain_code.py"
COMMANDS = "sip_node/programs/lists/commands.py"
IDS = "sip_node/programs/lists/open_ids.py"
NUMBERS = "sip_node/programs/lists/open_numbers.py"
KERNEL = "sip_node/programs/lists/listed_kernel.py"
LISTS = "sip_node/programs/lists/command_lists.py"
GUARDED = "sip_node/programs/lists/guarded_integers.py"
PLACES = "sip_node/programs/lists/places.py"
RECORDER = "sip_node/programs/lists/recorder.py"
MESSAGES = "sip_node/programs/lists/message_recorder.py"

RANDOM = "tests/property/test_command_lists.py"
KERNELS = "tests/integration/test_command_lists.py"
COLLECTIVES = "tests/integration/test_collective_lists.py"
KEYS = "tests/unit/sip_node/programs/lists/test_command_lists.py"
TEST_ARGUMENTS = "tests/unit/sip_node/programs/lists/test_arguments.py"
TEST_IDS = "tests/unit/sip_node/programs/lists/test_open_ids.py"
TEST_GUARDED = "tests/unit/sip_node/programs/lists/test_guarded_integers.py"
TEST_NUMBERS = "tests/unit/sip_node/programs/lists/test_open_numbers.py"
TEST_CODE = "tests/unit/sip_node/programs/lists/test_plain_code.py"

MUTANTS: tuple[Mutant, ...] = (
    # Collectives.
    Mutant(
        name="list-release-that-returns-no-credits",
        file=MESSAGES,
        old="yield from run.kernel.releasing(run.value(self.message))",
        new="yield from ()",
        breaks="A message that is released returns its slots, at the time of the release.",
        noticed_by=COLLECTIVES,
    ),
    Mutant(
        name="list-message-at-its-target",
        file=MESSAGES,
        old="return RecordedOperation(self, number, message)",
        new="return RecordedOperation(self, number, target)",
        breaks="A message that stays in its slots is not at the target of its receive.",
        noticed_by=COLLECTIVES,
    ),
    Mutant(
        name="list-send-that-blocks",
        file=MESSAGES,
        old="self.started(run, (yield from run.kernel.beginning_send(self.direction, value)))",
        new="yield from run.kernel.sending(self.direction, value)",
        breaks="A send beside the kernel does not block it.",
        noticed_by=COLLECTIVES,
    ),
    Mutant(
        name="list-wait-without-its-line",
        file="sip_node/programs/kernel_wait.py",
        old="wait.line or line or kernel_line(self._program.frame)",
        new="wait.line or kernel_line(self._program.frame)",
        breaks="The report of a deadlock names the line of a kernel that runs from a list.",
        noticed_by=COLLECTIVES,
    ),
    Mutant(
        name="list-of-a-collective-that-counts-as-none",
        file="sip_node/programs/lists/kernel_start.py",
        old="if commands is None or commands.exchanges or launch.call:",
        new="if commands is None:",
        breaks="A collective whose kernels have lists is repeated as one without them.",
        noticed_by="tests/integration/test_exchanges.py",
        with_core=True,
    ),
    # Keys.
    Mutant(
        name="list-key-without-the-type-of-a-number",
        file=ARGUMENTS,
        old="            return kind, each\n",
        new="            return each\n",
        breaks="1, 1.0 and True are different arguments.",
        noticed_by=TEST_ARGUMENTS,
    ),
    Mutant(
        name="list-key-with-the-value-of-a-float",
        file=ARGUMENTS,
        old="return float, packed((number,))",
        new="return float, number",
        breaks="0.0 and -0.0 are different arguments.",
        noticed_by=TEST_ARGUMENTS,
    ),
    Mutant(
        name="list-key-without-the-type-of-a-pointer",
        file=ARGUMENTS,
        old="return Pointer, pointer.dtype.name",
        new="return Pointer, None",
        breaks="A pointer to other elements is another argument.",
        noticed_by=TEST_ARGUMENTS,
    ),
    Mutant(
        name="list-key-without-captured-variables",
        file=ARGUMENTS,
        old="function.__defaults__, given, variables[:cells])",
        new="function.__defaults__, given)",
        breaks="A kernel depends on the variables that it captures.",
        noticed_by=TEST_ARGUMENTS,
    ),
    Mutant(
        name="list-key-without-defaults",
        file=ARGUMENTS,
        old="self._bound(FunctionType, function.__defaults__, given,",
        new="self._bound(FunctionType, given,",
        breaks="A kernel depends on its default arguments.",
        noticed_by=TEST_ARGUMENTS,
    ),
    Mutant(
        name="list-key-with-a-pointer-in-a-function",
        file=ARGUMENTS,
        old="        if self._depth:\n",
        new="        if self._depth < 0:\n",
        breaks="The address of a captured pointer is not open in a list.",
        noticed_by=TEST_ARGUMENTS,
    ),
    Mutant(
        name="list-key-without-the-pes",
        file=LISTS,
        old="kernel = _Kernel((launch.pes, launch.cubes), grid, parts)",
        new="kernel = _Kernel((0, 0), grid, parts)",
        breaks="A kernel depends on the number of programs.",
        noticed_by=KERNELS,
    ),
    Mutant(
        name="list-key-without-the-grid",
        file=LISTS,
        old="(grid.lengths, *key)",
        new="(1, *key)",
        breaks="A kernel depends on the lengths of its grid.",
        noticed_by=KERNELS,
    ),
    Mutant(
        name="list-for-the-ids-of-another-program",
        file="sip_node/programs/lists/key_states.py",
        old="return *key, axes, tuple([ids[axis] for axis in axes])",
        new="return *key, axes, ()",
        breaks="The list of a kernel that reads an id is one for that id.",
        noticed_by="tests/integration/test_lists_of_exchanges.py",
    ),
    # Guards.
    Mutant(
        name="list-guard-without-comparisons",
        file=GUARDED,
        old="distance._require(*((None, -1) if is_below else (0, None)))",
        new="distance._require(None, None)",
        breaks="A list serves the programs for which a comparison has one result.",
        noticed_by=TEST_GUARDED,
    ),
    Mutant(
        name="list-guard-without-quotients",
        file=GUARDED,
        old="(ends[0], ends[1] - 1) if period > 0",
        new="(None, None) if period > 0",
        breaks="A list serves the programs for which a quotient is one number.",
        noticed_by=TEST_GUARDED,
    ),
    Mutant(
        name="list-guard-without-remainders",
        file=GUARDED,
        old="            return total % self.period == self.low\n",
        new="            return True\n",
        breaks="A list serves the addresses that have one remainder.",
        noticed_by=TEST_GUARDED,
    ),
    Mutant(
        name="list-guard-of-the-other-sign",
        file=GUARDED,
        old="            shift = -self.number\n",
        new="            shift = self.number\n",
        breaks="The guard of a negative sum is that of its negative.",
        noticed_by=TEST_GUARDED,
    ),
    # Code of users.
    Mutant(
        name="list-of-code-that-changes-globals",
        file=CODE,
        old='        "STORE_GLOBAL",\n',
        new="",
        breaks="A kernel that changes what others see runs on each PE.",
        noticed_by=TEST_CODE,
    ),
    Mutant(
        name="list-of-code-that-changes-captured-variables",
        file=CODE,
        old="(kind in _STORES and name in outer)",
        new="(kind in _STORES and name in ())",
        breaks="A kernel that counts its calls runs on each PE.",
        noticed_by=TEST_CODE,
    ),
    Mutant(
        name="list-of-code-that-catches-exceptions",
        file=CODE,
        old='instructions[index + 1].opname != "WITH_EXCEPT_START"',
        new='instructions[index + 1].opname == "NOP"',
        breaks="What a kernel does after an error is known on its PE only.",
        noticed_by=TEST_CODE,
    ),
    Mutant(
        name="list-of-code-without-its-globals",
        file=CODE,
        old="            names[name] = None\n",
        new="            names.clear()\n",
        breaks="A kernel depends on the global variables that it reads.",
        noticed_by=KERNELS,
    ),
    Mutant(
        name="list-of-code-that-reads-elements",
        file=CODE,
        old='frozenset({"address", "data", ',
        new='frozenset({"address", ',
        breaks="A kernel that reads elements runs on each PE.",
        noticed_by=TEST_CODE,
    ),
    Mutant(
        name="list-with-an-assertion-that-holds",
        file=RECORDER,
        old='        raise NotListed(f"the kernel reads elements of {value!r}")\n',
        new="        return value.data\n",
        breaks="An assertion is one about the elements of each PE.",
        noticed_by=KERNELS,
    ),
    # Places.
    Mutant(
        name="list-pointer-without-its-offset",
        file=PLACES,
        old="self.addresses[place.base] + place.nbytes",
        new="self.addresses[place.base]",
        breaks="A pointer is moved by what the kernel has added to it.",
        noticed_by=RANDOM,
    ),
    Mutant(
        name="list-pointer-without-its-ids",
        file=PLACES,
        old="            address += self.ids[axis] * nbytes\n",
        new="            address += nbytes\n",
        breaks="A pointer is moved by the ids of the program.",
        noticed_by=KERNELS,
    ),
    Mutant(
        name="list-rest-of-an-id",
        file=IDS,
        old="other and not any(each % other for each in self.factors.values())",
        new="other",
        breaks="A division whose rest depends on an id reads it.",
        noticed_by=TEST_IDS,
    ),
    Mutant(
        name="list-id-without-its-number",
        file=IDS,
        old="return OpenId(factors, self.number * other)",
        new="return OpenId(factors, self.number)",
        breaks="A product with an id has all parts of the sum.",
        noticed_by=TEST_IDS,
    ),
    # Numbers.
    Mutant(
        name="list-number-of-operands-in-another-order",
        file=NUMBERS,
        old="return self._computed(operator.sub, other, self)",
        new="return self._computed(operator.sub, self, other)",
        breaks="A formula has the operands of the kernel.",
        noticed_by=TEST_NUMBERS,
    ),
    Mutant(
        name="list-number-with-a-divisor-that-may-be-0",
        file=NUMBERS,
        old="            other._read()\n",
        new="            pass\n",
        breaks="A quotient by 0 is an error of the kernel.",
        noticed_by=TEST_NUMBERS,
    ),
    Mutant(
        name="list-key-without-the-numbers-that-are-read",
        file=LISTS,
        old="packed([self.numbers[place] for place in reads])",
        new='b""',
        breaks="The commands of a kernel depend on the numbers that it reads.",
        noticed_by=RANDOM,
    ),
    Mutant(
        name="list-with-numbers-of-its-recording",
        file=PLACES,
        old="return LaunchNumber.computed(place, self._numbers)",
        new="return LaunchNumber.computed(place, [1.0] * 99)",
        breaks="A list takes the numbers of its launch.",
        noticed_by=RANDOM,
    ),
    Mutant(
        name="list-of-a-sum-of-open-numbers",
        file=ARGUMENTS,
        old="        self.reads_all |= adds_up(function)\n",
        new="",
        breaks="`sum` adds floats in another way than the sums of two, from Python 3.12 on.",
        noticed_by=TEST_ARGUMENTS,
    ),
    Mutant(
        name="list-value-without-its-view",
        file=PLACES,
        old="return value if place.view is None else part_of(value, place.view)",
        new="return value",
        breaks="An operand may be a view of a value.",
        noticed_by=RANDOM,
    ),
    Mutant(
        name="list-step-without-its-view",
        file=COMMANDS,
        old="return result if place.view is None else part_of(result, place.view)",
        new="return result",
        breaks="An operand of a chain may be a view of a result of the chain.",
        noticed_by=RANDOM,
        survives="Axes of length 1, which are all that such a view can add, change no result.",
    ),
    Mutant(
        name="list-over-a-new-value",
        file=COMMANDS,
        old="        call = self.call._replace(operands=operands, out=run.out(self.out))\n",
        new="        call = self.call._replace(operands=operands)\n",
        breaks="A result is written over the value that the kernel has named.",
        noticed_by=RANDOM,
        survives="Only collectives, which have no list, write an operation over a value.",
    ),
    Mutant(
        name="list-chain-in-registers-of-pe-0",
        file=COMMANDS,
        old="None, run.registers + nbytes)",
        new="None, nbytes)",
        breaks="The results of a chain are in registers of the PE.",
        noticed_by=RANDOM,
    ),
    Mutant(
        name="list-keeps-the-values-of-a-scope",
        file=COMMANDS,
        old="        del run.values[count:]\n",
        new="",
        breaks="The numbers of values in a scope are used again behind it.",
        noticed_by=RANDOM,
    ),
    Mutant(
        name="list-scope-that-does-not-end",
        file=COMMANDS,
        old="        yield from run.kernel.ending_scratch(begin)\n",
        new="        yield from ()\n",
        breaks="The end of a scope frees its memory, and waits for who uses it.",
        noticed_by=RANDOM,
    ),
    Mutant(
        name="list-without-settling",
        file=RECORDER,
        old="        if self.writes_over:\n",
        new="        if not self.scratch_memory:\n",
        breaks="A chain waits for the load that writes over one of its operands.",
        noticed_by=RANDOM,
    ),
    Mutant(
        name="list-that-does-not-wait-at-its-end",
        file=KERNEL,
        old="                    yield from self._operations.awaiting_all()\n",
        new="",
        breaks="A kernel ends with all that it has started.",
        noticed_by=RANDOM,
    ),
    Mutant(
        name="list-without-lines-of-errors",
        file=KERNEL,
        old="issuer.line = faults.line = each.line",
        new="issuer.line = each.line",
        breaks="An error names the line of the kernel.",
        noticed_by=KERNELS,
    ),
    Mutant(
        name="list-without-lines-of-steps",
        file=KERNEL,
        old="issuer.line = faults.line = each.line",
        new="faults.line = each.line",
        breaks="A step names the line of the kernel.",
        noticed_by=RANDOM,
    ),
    Mutant(
        name="collective-with-the-key-of-other-pointers",
        file=LISTS,
        old="each.address == other.address and each.dtype is other.dtype",
        new="each.dtype is other.dtype",
        breaks="A key has the addresses of all pointers.",
        noticed_by=KEYS,
    ),
    Mutant(
        name="collective-with-the-key-of-other-numbers",
        file=LISTS,
        old="    return kind in PLAIN and each == other\n",
        new="    return kind in PLAIN\n",
        breaks="Numbers among the arguments of a collective are parts of its key.",
        noticed_by=KEYS,
    ),
)
