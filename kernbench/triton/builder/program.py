"""The program of a Triton kernel that runs on a PE: its tape, and its values in TCM."""

from collections.abc import Sequence
from contextvars import ContextVar
from inspect import currentframe
from types import CodeType, FrameType
from typing import Any, NoReturn

from kernbench.triton.indices.element_types import value_type
from kernbench.triton.indices.index_values import (
    Affine,
    Array,
    IndexValue,
    Shape,
)
from kernbench.triton.indices.open_integers import plain_number
from kernbench.triton.tape.tape import (
    AtomicCommand,
    MathStep,
    Operand,
    TapeBlock,
    TapeCommand,
    TapeCounts,
    TapeStorage,
    result_type,
)
from kernbench.triton.tape.tape_run import TapeRun
from runtime.core.dtypes import DType, boolean, int32
from runtime.language.caller import is_language, location
from runtime.language.context import KernelContext
from runtime.language.running import NO_OPTIONS, MathOptions
from runtime.language.value import row_major
from runtime.language.views import View

MOST_SPINS = 1 << 14
"""Comparisons of one element in a row, milliseconds, after which a program is an error."""
Site = tuple[CodeType, int]
"""A call in the code of a kernel."""


class DeviceValue:
    """A scalar or a block in TCM, as the handle of a tensor of Triton.

    `shape` may repeat axes of the block that have length 1. The storage counts the objects that
    hold it: reference counts are those of the program, and the same in every run.
    """

    __slots__ = ("block", "dtype", "shape")

    def __init__(self, dtype: Any, block: TapeBlock, shape: Shape | None = None) -> None:
        self.dtype, self.block = dtype, block
        self.shape = block.shape if shape is None else shape
        block.storage.holders += 1

    def __del__(self) -> None:
        self.block.storage.holders -= 1

    def set_attr(self, name: str, value: object) -> None:
        """Take an attribute of the compiler, from which nothing is inferred here."""


Handle = IndexValue | DeviceValue


class TritonProgram:
    """One program on a PE; loads start up to `stages` - 1 iterations ahead."""

    def __init__(self, context: KernelContext, stages: int, counts: TapeCounts) -> None:
        self.context, self.counts = context, counts
        self._run = TapeRun(context, stages)
        self._tape: list[TapeCommand] = []
        # The last command that repeats itself: its site, its address, and how often it has.
        self._spins: tuple[Site, int, int] | None = None

    def add(self, command: TapeCommand) -> None:
        """Record a command at the line of the kernel that runs."""
        command.line = location(_kernel_frame())
        self._tape.append(command)
        if not isinstance(command, MathStep | AtomicCommand):
            self._spins = None

    def spin(self, address: int) -> None:
        """A comparison in memory begins; a program that makes no other command waits for it."""
        site, before = self.site(), self._spins
        spins = before[2] + 1 if before is not None and before[:2] == (site, address) else 0
        self._spins = site, address, spins
        if spins == MOST_SPINS:
            self.fail(
                f"tl.atomic_cas has compared one element {spins:,} times, and the program does "
                "nothing else: what it waits for may be in a program behind it on its PE, or in "
                "none"
            )

    def count(self, counts: TapeCounts) -> None:
        """Count the descriptors of a load or a store."""
        if counts.elements:
            # They are reported, so each program has to count them.
            self.context.run_again("single elements")
        self.counts.boxes += counts.boxes
        self.counts.rows += counts.rows
        self.counts.elements += counts.elements

    def site(self) -> Site:
        """The call of the kernel that runs."""
        frame = _kernel_frame()
        return frame.f_code, frame.f_lasti

    def math(
        self,
        name: str,
        operands: Sequence[Operand],
        options: MathOptions = NO_OPTIONS,
        target: TapeBlock | None = None,
    ) -> TapeBlock:
        """Record an operation of the vector engine; its result, a new value or `target`."""
        given = tuple(operands)
        shape, dtype = result_type(name, given, options)
        block = TapeStorage(shape, dtype).whole() if target is None else target
        self.add(MathStep(name, given, block, options))
        return block

    def finish(self) -> None:
        """Issue what is left; the program has ended."""
        self._issue(is_last=True)

    def elements(self, value: DeviceValue) -> Array:
        """The elements of a value, for the host side: the program waits for them."""
        self._issue(is_last=False)
        array = self._run.elements(value.block)
        if array is None:
            self.fail(
                "the program reads elements, and a run with --no-data has none: addresses, masks "
                "and control flow must follow from arguments"
            )
        return array

    def fail(self, problem: str) -> NoReturn:
        """Raise the error of the kernel at its line."""
        self.context.locate(location(_kernel_frame()))
        self.context.fail_assertion(problem)

    def _issue(self, *, is_last: bool) -> None:
        tape, self._tape = self._tape, []
        if tape:
            self._run.run(tape, is_last=is_last)

    def in_tcm(self, value: Handle) -> DeviceValue:
        """A value of the host side as one in TCM, by the commands that compute it."""
        if isinstance(value, DeviceValue):
            return value
        if value.in_tcm is None:
            value.in_tcm = self._made(value)
        return value.in_tcm

    def _made(self, value: IndexValue) -> DeviceValue:
        number, dtype = value.number, value_type(value.dtype)
        if number is not None:
            shape = (1,) * len(value.shape)
            block = self.math(
                "full", (plain_number(number),), MathOptions(dtype=dtype, shape=shape)
            )
            return DeviceValue(value.dtype, block, value.shape)
        if value.affine is not None:
            block = self._range(value.affine, value.shape, dtype)
            return DeviceValue(value.dtype, block, value.shape)
        if value.box is not None:
            return DeviceValue(value.dtype, self._inside(value), value.shape)
        if value.recipe is None:
            self.fail(
                "a block of numbers that the program has read from memory is used as a value "
                "again; compute with the value that tl.load returns"
            )
        make, operands = value.recipe
        made = [
            self.in_tcm(each) if isinstance(each, IndexValue) and each.number is None else each
            for each in operands
        ]
        result = make(*made)
        assert isinstance(result, DeviceValue)
        return result

    def _index(self, axis: int, shape: Shape, dtype: DType) -> TapeBlock:
        """The indices along an axis, with length 1 along all others."""
        block = self.math("arange", (0, shape[axis]), MathOptions(dtype=dtype))
        lengths = tuple(n if each == axis else 1 for each, n in enumerate(shape))
        return TapeBlock(block.storage, View(lengths, row_major(lengths)))

    def _range(self, affine: Affine, shape: Shape, dtype: DType) -> TapeBlock:
        total: TapeBlock | None = None
        for axis, (step, length) in enumerate(zip(affine.steps, shape, strict=True)):
            if step and length > 1:
                term = self._index(axis, shape, dtype)
                if step != 1:
                    term = self.math("mul", (term, step))
                total = term if total is None else self.math("add", (total, term))
        assert total is not None
        start = plain_number(affine.start)
        return self.math("add", (total, start)) if start else total

    def _inside(self, value: IndexValue) -> TapeBlock:
        """The bools of a box."""
        assert value.box is not None
        total: TapeBlock | None = None
        for axis, ((first, stop), length) in enumerate(zip(value.box, value.shape, strict=True)):
            for name, bound, is_open in (("ge", first, first > 0), ("lt", stop, stop < length)):
                if is_open:
                    index = self._index(axis, value.shape, int32)
                    term = self.math(name, (index, bound))
                    total = term if total is None else self.math("bitwise_and", (total, term))
        assert total is not None
        return total

    def whole(self, value: DeviceValue) -> TapeBlock:
        """The block with all elements of a value, repeated ones too."""
        if value.block.shape == value.shape:
            return value.block
        true = self.math("full", (1,), MathOptions(dtype=boolean, shape=value.shape))
        return self.math("where", (true, value.block, value.block))


current_program: ContextVar[TritonProgram] = ContextVar("current_program")
"""The program of the running kernel; kernels of many PEs interleave, each in its own context."""


def running() -> TritonProgram:
    """The running program; `RuntimeError` outside a kernel."""
    try:
        return current_program.get()
    except LookupError:
        raise RuntimeError(
            "a function under @triton.jit was called outside a kernel: launch it with "
            "kernel[grid](x, y, n), or torch.launch(name, kernel, x, y, n, grid=grid)"
        ) from None


def _kernel_frame() -> FrameType:
    """The innermost frame of the code of a user."""
    frame = currentframe()
    while frame is not None and frame.f_back is not None and is_language(frame):
        frame = frame.f_back
    assert frame is not None
    return frame
