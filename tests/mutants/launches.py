"""Mutants of repeated launches: what is not compared, not moved, or not left behind.

A run in which launches are repeated must be one without, so tests compare both.
"""

from tests.mutants.mutant import Mutant

ENGINES = "sip_node/chip/launches/idle_engines.py"
LEARNED = "sip_node/chip/launches/learned_launch.py"
NUMBERS = "sip_node/chip/launches/recorded_numbers.py"
PASSENGERS = "sip_node/chip/launches/passengers.py"
REPEATED = "sip_node/chip/launches/repeated_launch.py"
RELOCATION = "sip_node/chip/launches/relocation.py"
SLICE = "sip_node/chip/launches/learned_slice.py"
SLOTS = "sip_node/chip/launches/tile_slots.py"
TEMPLATE = "sip_node/chip/launches/launch_template.py"
TEMPLATES = "sip_node/chip/launches/launch_templates.py"
VALUES = "sip_node/chip/launches/launch_values.py"
WRITTEN = "sip_node/chip/launches/written_bytes.py"

LAUNCHES = "tests/integration/test_launch_templates.py"
LAUNCH_NUMBERS = "tests/integration/test_launch_numbers.py"
TEST_RELOCATION = "tests/unit/sip_node/chip/launches/test_relocation.py"
TEST_TEMPLATE = "tests/unit/sip_node/chip/launches/test_launch_template.py"
TEST_VALUES = "tests/unit/sip_node/chip/launches/test_launch_values.py"
PROCESSES = "tests/multiproc/test_repeated_launches.py"

BOUNDS = "sip_node/chip/bounds/send_bounds.py"
TEST_BOUNDS = "tests/unit/sip_node/chip/bounds/test_send_bounds.py"

MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        name="repeated-launch-that-ends-a-way-later",
        file=BOUNDS,
        old="        self.commands.complete_at(command, end_ps)\n",
        new="        self._launched(command, launch, start_ps)\n",
        breaks="A rank goes on at the end of a repeated launch, and may send then.",
        noticed_by=TEST_BOUNDS,
    ),
    # The state at the begin.
    Mutant(
        name="launch-repeated-whatever-is-to-come",
        file=PASSENGERS,
        old="            or host.is_awaited(transfer.tag)\n",
        new="",
        breaks="A program that waits for an answer goes on when it comes.",
        noticed_by=LAUNCHES,
        with_core=True,
    ),
    Mutant(
        name="launch-repeated-wherever-answers-are",
        file=PASSENGERS,
        old="return self.time_ps - begin_ps, self.step, self.tail_ps - begin_ps",
        new="return 0, 0, 0",
        breaks="Answers arrive at the times that follow from where they are.",
        noticed_by=LAUNCHES,
        with_core=True,
    ),
    Mutant(
        name="launch-of-other-commands-repeated",
        file=TEMPLATES,
        old="state = key.commands, tuple(",
        new="state = key.launch, tuple(",
        breaks="Launches with other kernels or numbers are others.",
        noticed_by=LAUNCHES,
        with_core=True,
    ),
    Mutant(
        name="launch-learned-beside-something-else",
        file=LEARNED,
        old="if pending is None or self._of_others() != self._foreign:",
        new="if pending is None:",
        breaks="What a copy of the host has done is no part of a launch.",
        survives="in one process nothing begins that is not an event before; messages of others do",
        noticed_by=LAUNCHES,
        with_core=True,
    ),
    Mutant(
        name="launch-repeated-before-its-end-is-safe",
        file=TEMPLATES,
        old="if end_ps < self.safe_ps():",
        new="if end_ps < 1 << 61:",
        breaks="A message of another process may come before the end of a launch.",
        noticed_by=PROCESSES,
        with_core=True,
    ),
    # What differs.
    Mutant(
        name="repeated-launch-with-tensors-that-overlap",
        file=RELOCATION,
        old="return tuple(distances) if self._are_apart(shifts) else None",
        new="return tuple(distances)",
        breaks="Tensors that were apart are apart, or the launch is another one.",
        noticed_by=LAUNCHES,
        with_core=True,
    ),
    Mutant(
        name="repeated-launch-with-blocks-past-their-extent",
        file=RELOCATION,
        old="            if end > ranges[index][1]:\n",
        new="            if end < 0:\n",
        breaks="A block that is in no extent of a tensor does not move with it.",
        noticed_by=TEST_RELOCATION,
        with_core=True,
    ),
    Mutant(
        name="repeated-launch-with-blocks-of-no-tensor",
        file=RELOCATION,
        old="if any(map(memories.is_external, addresses_before(records, first, DMA))):",
        new="if any(map(memories.is_external, ())):",
        breaks="A launch with blocks of other tensors than those of its arguments is simulated.",
        noticed_by=TEST_RELOCATION,
        with_core=True,
    ),
    Mutant(
        name="repeated-launch-with-blocks-where-they-were",
        file=TEMPLATE,
        old="            self._records.move(distances)\n",
        new="            self._records.move(before)\n",
        breaks="The record of a store has the address of the tensor of its launch.",
        noticed_by=LAUNCHES,
        with_core=True,
    ),
    Mutant(
        name="repeated-launch-with-values-of-other-tensors",
        file=TEMPLATE,
        old="                    block.offset += now - was\n",
        new="                    block.offset += 0\n",
        breaks="Values are read and written where the tensors of the launch are.",
        noticed_by=LAUNCHES,
        with_core=True,
    ),
    Mutant(
        name="repeated-launch-where-an-older-page-table-has-its-blocks",
        file=TEMPLATE,
        old="mapped != self._mapped or len(",
        new="len(",
        breaks="Blocks are where the page tables have them when the launch begins.",
        noticed_by=TEST_TEMPLATE,
        with_core=True,
    ),
    Mutant(
        name="slice-with-other-events",
        file=SLICE,
        old="            or served.events != reference.events\n",
        new="",
        breaks="Blocks at other places on the channels may be served at other times.",
        noticed_by=LAUNCHES,
        with_core=True,
    ),
    Mutant(
        name="repeated-products-with-the-slots-of-the-first",
        file=SLOTS,
        old="slot.address(turns[slot.of][slot.place]) - slot.address(slot.before)",
        new="0 * slot.address(turns[slot.of][slot.place])",
        breaks="Products take the slots whose turn it is.",
        noticed_by=LAUNCHES,
        with_core=True,
    ),
    Mutant(
        name="repeated-products-that-take-no-turn",
        file=SLOTS,
        old="each.slots.turn = tuple(turn[place] for place in places)",
        new="each.slots.turn = turn",
        breaks="After a repeated launch it is the turn of other slots.",
        noticed_by=LAUNCHES,
        with_core=True,
    ),
    Mutant(
        name="repeated-launch-with-numbers-of-the-first",
        file=NUMBERS,
        old="            if numbers[pe] != before[pe]:\n",
        new="            if pe < 0:\n",
        breaks="The records have the numbers of their launch.",
        noticed_by=LAUNCH_NUMBERS,
        with_core=True,
    ),
    Mutant(
        name="repeated-launch-with-values-of-other-numbers",
        file=TEMPLATE,
        old="                self._values.set_number(number, index, value)\n",
        new="                self._values.blocks(())\n",
        breaks="Values are computed with the numbers of their launch.",
        noticed_by=LAUNCH_NUMBERS,
        with_core=True,
    ),
    Mutant(
        name="launch-learned-from-a-function",
        file=LEARNED,
        old="functions != self._functions",
        new="functions < 0",
        breaks="Records of a function have numbers without formulas.",
        noticed_by=LAUNCH_NUMBERS,
        with_core=True,
    ),
    # What is left behind.
    Mutant(
        name="repeated-launch-that-counts-no-work-of-dma",
        file=ENGINES,
        old='    "dma": ("busy_ps", "nbytes"),\n',
        new='    "dma": ("nbytes",),\n',
        breaks="The counters of a repeated launch are those of a simulated one.",
        noticed_by=LAUNCHES,
        with_core=True,
    ),
    Mutant(
        name="repeated-launch-that-counts-no-packets",
        file=REPEATED,
        old="        chip.fabric.sent += changes.sent\n",
        new="        chip.fabric.sent += changes.delivered\n",
        breaks="As many packets are sent as in a simulated launch.",
        noticed_by=LAUNCHES,
        with_core=True,
    ),
    Mutant(
        name="repeated-launch-with-another-number-of-events",
        file=TEMPLATES,
        old="changes.events - 2 * len(changes.arrivals) - 1",
        new="changes.events - len(changes.arrivals) - 1",
        breaks="The number of events is that of a simulated launch.",
        noticed_by=LAUNCHES,
        with_core=True,
    ),
    Mutant(
        name="repeated-launch-whose-records-come-before-answers",
        file=REPEATED,
        old="engine.at(time_ps, self._enter, records)",
        new="engine.at(time_ps, self._enter, 0)",
        breaks="The records of a launch and those of answers are in the order of their ends.",
        noticed_by=LAUNCHES,
        with_core=True,
    ),
    Mutant(
        name="repeated-launch-without-rows-of-its-kernels",
        file=REPEATED,
        old="            rows.programs,\n",
        new="            (),\n",
        breaks="A run with records has a row for each kernel.",
        noticed_by=LAUNCHES,
        with_core=True,
    ),
    # Values.
    Mutant(
        name="repeated-loads-that-are-one-wherever-their-blocks-are",
        file=VALUES,
        old="operations = self._operations if is_shared else self._apart",
        new="operations = self._operations if is_shared else self._operations",
        breaks="Blocks that were the same may be several in another launch.",
        noticed_by=TEST_VALUES,
    ),
    Mutant(
        name="repeated-load-of-what-was-there-before-a-store",
        file=VALUES,
        old="written = max([written, *self._written.touched(row)])",
        new="written = min([written, *self._written.touched(row)])",
        breaks="A load behind a store reads what was stored.",
        noticed_by=TEST_VALUES,
    ),
    Mutant(
        name="repeated-launch-that-drops-a-result-too-early",
        file=VALUES,
        old="last[used] = max(last[used], number)",
        new="last[used] = min(used + 1, number)",
        breaks="A result is kept until its last use.",
        noticed_by=LAUNCHES,
        with_core=True,
    ),
    Mutant(
        name="repeated-launch-that-leaves-nothing-in-tcm",
        file=VALUES,
        old="            if number in left:\n",
        new="            if number in ():\n",
        breaks="The bytes in TCM are those of a simulated launch.",
        noticed_by=LAUNCHES,
        with_core=True,
    ),
    Mutant(
        name="repeated-sum-along-another-axis",
        file=VALUES,
        old="axis=record.axis, shape=shape)",
        new="axis=record.axis and 0, shape=shape)",
        breaks="A reduction is along the axis of its record.",
        noticed_by=LAUNCHES,
        with_core=True,
    ),
    Mutant(
        name="repeated-operand-of-the-first-writer",
        file=WRITTEN,
        old="        kept = [written]\n",
        new="        kept = [self._ranges[first]] if first < behind else [written]\n",
        breaks="An operand is what the last operation has written there.",
        noticed_by=LAUNCHES,
        with_core=True,
    ),
)
