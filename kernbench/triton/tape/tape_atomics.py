"""Issues the atomic operations of a tape on the PE."""

from kernbench.triton.tape.tape import AtomicCommand
from kernbench.triton.tape.tape_memory import MemoryInUse
from kernbench.triton.tape.tcm_pool import part_of_view
from runtime.language.atomics import AtomicCall
from runtime.language.context import KernelContext, PendingResult
from runtime.language.value import Value


def begun_atomic(
    context: KernelContext, memory: MemoryInUse, atomic: AtomicCommand, old: Value | None
) -> list[PendingResult]:
    """Begin the operations of a command, whose old elements go to `old` if there is one; those for
    which the program has not waited.

    One that releases is behind the stores of the program; what follows is behind one that acquires.
    """
    if atomic.releases:
        memory.wait_for(memory.writing())
    values = [each.storage.value for each in atomic.operands]
    pending = list[PendingResult]()
    for views, view, pointer, strides in atomic.parts:
        # The second use of an address is behind the first one, in the order of the elements.
        memory.wait_for(memory.used(pointer, view.shape, strides))
        given = [
            part_of_view(value, each)
            for value, each in zip(values, views, strict=True)
            if value is not None
        ]
        call = AtomicCall(
            operation=atomic.operation,
            pointer=pointer,
            value=given[0],
            strides=strides,
            compare=given[1] if len(given) > 1 else None,
            out=None if old is None else part_of_view(old, view),
            reads=old is not None,
            acquires=atomic.acquires,
            releases=atomic.releases,
        )
        operation = context.atomic(call)
        memory.write(pointer, view.shape, strides, operation)
        pending.append(operation)
    if atomic.acquires:
        memory.wait_for(pending)
        return []
    return pending
