"""Issues the commands of a tape on the PE.

Commands are issued in the order of the program, with two exceptions: loads start ahead, as far as
`stages` iterations and the free TCM allow, and neighbouring operations of the vector engine become
chains. A command waits for the operations in flight whose values it uses, by the interlocks that
every value in TCM has.

    program    load a0  load b0  dot  | load a1  load b1  dot  | load a2  load b2  dot
    PE_CPU     a0 b0 a1 b1 (2 stages)  dot  a2 b2  dot  a3 b3  dot
"""

from collections import deque
from collections.abc import Sequence

from kernbench.triton.tape.accumulation import ShorterTape
from kernbench.triton.tape.chain_steps import StepChain, results_of
from kernbench.triton.tape.products_ahead import ProductsAhead
from kernbench.triton.tape.tape import (
    AtomicCommand,
    LoadCommand,
    MathStep,
    ProductCommand,
    StoreCommand,
    TapeBlock,
    TapeCommand,
    TapeStorage,
)
from kernbench.triton.tape.tape_atomics import begun_atomic
from kernbench.triton.tape.tape_memory import LoadsAhead, MemoryInUse, blocks_of
from kernbench.triton.tape.tcm_budget import bytes_ahead
from kernbench.triton.tape.tcm_pool import TcmPool, part_of_view
from runtime.core.errors import PageFaultError
from runtime.language.caller import LANGUAGE_ERRORS
from runtime.language.chains.fused import fused_async
from runtime.language.context import KernelContext, PendingResult, PendingValues
from runtime.language.memory import gather_async, load_async, ref, store_async
from runtime.language.memory_in_flight import UsedBlock
from runtime.language.products import composite
from runtime.language.value import Array, Value

_NEVER = 1 << 62
_MOST_OPEN = 32
"""Operations in flight for which the kernel has not waited."""


class TapeRun:
    """Issues the tapes of one program, with loads up to `stages` - 1 iterations ahead."""

    def __init__(self, context: KernelContext, stages: int) -> None:
        self._context, self._stages = context, stages
        self._tcm, self._memory = TcmPool(context), MemoryInUse()
        self._live: dict[TapeStorage, None] = {}
        self._loading: dict[TapeStorage, list[PendingResult]] = {}
        self._access: LoadCommand | StoreCommand | AtomicCommand
        self._late: list[tuple[StoreCommand, int]] = []
        self._position = 0
        self._open: deque[PendingResult | PendingValues] = deque()

    def run(self, tape: Sequence[TapeCommand], *, is_last: bool) -> None:
        """Issue all commands; values that the program holds stay, unless it has ended."""
        commands = ShorterTape(tape, is_last=is_last).commands()
        self._number_uses(commands, is_last=is_last)
        line = ""
        self._chain = StepChain(self._context.vector_registers)
        self._ahead = ahead = LoadsAhead(
            commands,
            self._stages,
            0 if self._stages == 1 else bytes_ahead(commands, self._live, self._tcm.free_bytes),
        )
        self._products = ProductsAhead(commands) if self._stages > 1 else None
        try:
            for position, command in enumerate(commands):
                self._position, line = position, command.line
                if isinstance(command, LoadCommand):
                    # Before those ahead of it, which would take its bandwidth.
                    self._issue(command, position)
                    ahead.reach(command)
                for load in ahead.startable(position):
                    self._load(load)
                if not isinstance(command, LoadCommand):
                    self._issue(command, position)
                if isinstance(command, ProductCommand):
                    ahead.reach_product(command)
            line = self._close_chain(len(commands)) or line
            self._issue_late(len(commands))
        except PageFaultError as error:
            raise self._fault(error) from None
        except LANGUAGE_ERRORS as error:
            self._context.locate(line)
            self._context.fail_assertion(str(error))
        self._context.locate("")

    def _fault(self, error: PageFaultError) -> PageFaultError:
        """The page fault of a load or a store, with its mask."""
        return PageFaultError(
            error.kernel,
            error.coordinates,
            error.line,
            error.address,
            error.nbytes,
            f"{error.tensor}; {self._access.masked()}",
            error.program,
        )

    def elements(self, block: TapeBlock) -> Array | None:
        """The elements of a block, once they exist."""
        value = self._value(block)
        self._settle(block.storage)
        self._context.settle(value)
        return self._context.elements_of(value)

    def _number_uses(self, commands: Sequence[TapeCommand], *, is_last: bool) -> None:
        """Set the last use of each storage, and release those without one."""
        for storage in self._live:
            storage.last = -1
        for position, command in enumerate(commands):
            for storage in (*command.reads(), command.writes()):
                if storage is not None:
                    storage.last = position
                    self._live[storage] = None
        for storage in list(self._live):
            if storage.holders and not is_last:
                storage.last = len(commands)
            elif storage.last < 0:
                self._release(storage)

    def _issue(self, command: TapeCommand, position: int) -> None:
        if isinstance(command, MathStep):
            self._compute(command, position)
            return
        if isinstance(command, LoadCommand):
            if not command.is_issued:
                self._load(command)
            if self._stages == 1:
                self._settle(command.storage)
            self._release_used((command.storage,), position)
            return
        self._close_chain(position)
        self._context.locate(command.line)
        if isinstance(command, AtomicCommand):
            self._combine(command, position)
            return
        if isinstance(command, StoreCommand):
            # Its value may be on its way: the kernel issues the next command before.
            source = command.block.storage
            self._late.append((command, source.last))
            # Until it is issued.
            source.last = _NEVER
            if self._stages == 1:
                self._issue_late(position)
            return
        assert isinstance(command, ProductCommand)
        if not command.is_issued:
            self._multiply(command, position)
        self._release_used(command.reads(), position)
        self._issue_late(position)

    def _compute(self, step: MathStep, position: int) -> None:
        if self._chain.joins(step):
            return
        self._close_chain(position)
        if not self._chain.joins(step):
            self._math(step)
            self._release_used((*step.reads(), step.writes()), position)

    def _close_chain(self, position: int) -> str:
        """Issue the chain, whose steps are before a position; its line."""
        chain, self._chain = self._chain, StepChain(self._context.vector_registers)
        if not chain:
            return ""
        steps = chain.steps
        self._context.locate(steps[0].line)
        used = dict[TapeStorage, None]()
        for step in steps:
            for storage in step.reads():
                used[storage] = None
                self._settle(storage)
            used[step.target.storage] = None
        kept = [each for each in steps if _is_needed(each, position)]
        outs = tuple([self._target(each.target) for each in kept])
        if kept:
            self._open.append(
                fused_async(lambda: results_of(steps, kept, self._value), out=outs)  # pyright: ignore[reportArgumentType] - a tuple
            )
            self._wait_for_old()
        self._wrote(*(step.target.storage for step in steps))
        self._release_used(used, position - 1)
        # Behind the chain, since the product may wait for its loads.
        self._start_product(position)
        self._issue_late(position - 1)
        return steps[0].line

    def _issue_late(self, position: int) -> None:
        """Issue the stores that wait behind a command; the program is at a position."""
        late, self._late = self._late, []
        ends = dict[TapeStorage, int]()
        for store, last in late:
            self._context.locate(store.line)
            self._store(store)
            # One that is stored twice has its own last use at the first store.
            ends.setdefault(store.block.storage, last)
        for storage, last in ends.items():
            storage.last = last
            self._release_used((storage,), position)

    def _order_behind_stores(self, blocks: Sequence[UsedBlock]) -> None:
        """Issue the stores that wait before a command that uses bytes which they write."""
        if any(
            each.shares_bytes(UsedBlock(pointer, view.shape, strides))
            for store, _ in self._late
            for view, pointer, strides in store.boxes
            for each in blocks
        ):
            self._issue_late(self._position - 1)

    def _start_product(self, position: int) -> None:
        """Start the next product that needs no command before it, so that the GEMM engine works
        while the kernel waits for the vector engine.
        """
        if self._products is None:
            return
        product = self._products.startable(position)
        if product is not None and self._ahead.takes_product(product):
            self._multiply(product, position - 1)

    def _wrote(self, *storages: TapeStorage) -> None:
        if self._products is not None:
            for storage in storages:
                self._products.wrote(storage)

    def _math(self, step: MathStep) -> None:
        """An operation that no chain has."""
        self._wrote(step.target.storage)
        self._context.locate(step.line)
        for storage in step.reads():
            self._settle(storage)
        operands = [
            self._value(each) if isinstance(each, TapeBlock) else each for each in step.operands
        ]
        self._context.math(step.name, operands, step.options, self._target(step.target))

    def _load(self, load: LoadCommand) -> None:
        self._context.locate(load.line)
        load.is_issued, self._access = True, load
        self._wrote(load.storage)
        if self._late:
            self._order_behind_stores(blocks_of(load))
            self._context.locate(load.line)
        storage = load.storage
        whole = storage.value or self._tcm.allocate(storage)
        pending = self._loading.setdefault(storage, [])
        for view, pointer, strides in load.boxes:
            self._memory.wait_for(self._memory.written(pointer, view.shape, strides))
            operation = load_async(pointer, view.shape, strides, out=part_of_view(whole, view))
            self._memory.read(pointer, view.shape, strides, operation)
            pending.append(operation)
        for rows in load.rows:
            self._memory.wait_for(self._memory.written_rows(rows))
            operation = gather_async(
                rows.pointer,
                rows.numbers,
                rows.shape,
                (1, *rows.strides),
                out=part_of_view(whole, rows.view),
            )
            self._memory.read_rows(rows, operation)
            pending.append(operation)

    def _store(self, store: StoreCommand) -> None:
        self._access = store
        self._settle(store.block.storage)
        whole = store.block.storage.value
        assert whole is not None
        for view, pointer, strides in store.boxes:
            self._memory.wait_for(self._memory.used(pointer, view.shape, strides))
            operation = store_async(pointer, part_of_view(whole, view), strides)
            self._memory.write(pointer, view.shape, strides, operation)

    def _combine(self, atomic: AtomicCommand, position: int) -> None:
        self._issue_late(position)
        self._access, target = atomic, atomic.target
        for storage in atomic.reads():
            self._settle(storage)
        self._wrote(target)
        old = None
        if target.last > position:
            old = target.value or self._tcm.allocate(target)
        pending = begun_atomic(self._context, self._memory, atomic, old)
        if old is not None:
            self._loading.setdefault(target, []).extend(pending)
        self._release_used((*atomic.reads(), target), position)

    def _multiply(self, product: ProductCommand, position: int) -> None:
        product.is_issued = True
        if product.out is None:
            self._wrote(product.target.storage)
        for operand in (product.a, product.b):
            self._settle(operand.storage)
        if product.acc is not None:
            if product.acc.is_whole:
                # The scheduler orders products, so the kernel need not wait.
                self._open.extend(self._loading.pop(product.acc.storage, ()))
            self._settle(product.acc.storage)
        if product.out is not None:
            self._multiply_to_memory(product, product.out)
            return
        acc = None if product.acc is None else self._value(product.acc)
        a, b = self._value(product.a), self._value(product.b)
        target, over = product.target.storage, product.acc
        is_over = (
            over is not None
            and over.is_whole
            and over.storage.last == position
            and over.storage.dtype == target.dtype
            and over.storage not in (product.a.storage, product.b.storage)
            and target.value is None
        )
        if is_over and over is not None:
            self._tcm.take_over(target, over.storage)
        out = self._target(product.target)
        if is_over:
            acc = out
        operation = composite("gemm", a, b, acc=acc, out=out)
        self._loading.setdefault(target, []).append(operation)
        self._wait_for_old()

    def _multiply_to_memory(self, product: ProductCommand, store: StoreCommand) -> None:
        self._access = store
        ((view, pointer, strides),) = store.boxes
        self._order_behind_stores([UsedBlock(pointer, view.shape, strides)])
        self._context.locate(store.line)
        self._memory.wait_for(self._memory.used(pointer, view.shape, strides))
        acc = None if product.acc is None else self._value(product.acc)
        rows, columns = view.shape
        operation = composite(
            "gemm",
            self._value(product.a),
            self._value(product.b),
            ref(pointer, (rows, columns), (strides[0], 1)),
            acc=acc,
        )
        self._memory.write(pointer, view.shape, strides, operation)

    def _target(self, block: TapeBlock) -> Value:
        if block.storage.value is None:
            self._tcm.allocate(block.storage)
        return self._value(block)

    def _value(self, block: TapeBlock) -> Value:
        whole = block.storage.value
        assert whole is not None, "a block is read before it is written"
        return part_of_view(whole, block.view)

    def _settle(self, storage: TapeStorage) -> None:
        """Wait for the loads and products of a storage."""
        self._memory.wait_for(self._loading.pop(storage, ()))

    def _wait_for_old(self) -> None:
        while len(self._open) > _MOST_OPEN:
            self._open.popleft().wait()

    def _release_used(
        self, storages: Sequence[TapeStorage | None] | dict[TapeStorage, None], position: int
    ) -> None:
        for storage in storages:
            if storage is not None and storage.last <= position:
                self._release(storage)

    def _release(self, storage: TapeStorage) -> None:
        self._live.pop(storage, None)
        self._settle(storage)
        self._tcm.release(storage)


def _is_needed(step: MathStep, position: int) -> bool:
    """Whether the result of a step is used at a position or behind it."""
    storage = step.target.storage
    return storage.pieces or storage.last >= position
