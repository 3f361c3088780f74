"""Atomic operations of the builder: read-modify-writes at the memory."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np

from kernbench.triton import triton_api
from kernbench.triton.builder.builder_memory import (
    count_parts,
    memory_operand,
    on_host,
    source_of,
)
from kernbench.triton.builder.integers import same_bits
from kernbench.triton.builder.program import DeviceValue, Handle, running
from kernbench.triton.indices.descriptors import (
    BlockTransfer,
    any_used,
    described_mask,
    stored_parts,
    transfer,
)
from kernbench.triton.indices.element_types import memory_type, type_name
from kernbench.triton.indices.index_values import IndexValue
from kernbench.triton.tape.tape import AtomicCommand, AtomicPart, TapeBlock, TapeStorage
from runtime.core.dtypes import DType, int32
from runtime.language.atomics import ORDERS, check_types
from runtime.language.value import row_major
from runtime.language.views import View

_language = triton_api.module("triton.language")
_OPERATIONS: Mapping[str, str] = {"FADD": "add"}
"""Names of Triton's operations that are not those of a memory in capitals."""
_SEMANTICS: Mapping[str, str] = {"ACQUIRE_RELEASE": "acq_rel"}


class BuilderAtomics:
    """The atomic operations; all scopes of Triton are one, since memories serve all PEs."""

    def create_atomic_rmw(
        self, operation: Any, pointers: Handle, value: Handle, mask: Handle, sem: Any, _: object
    ) -> Handle:
        """Combine elements of memory with those of a value; the old ones."""
        name = _OPERATIONS.get(operation.name, operation.name.lower())
        return _combined(name, pointers, (value,), on_host(mask), _words(sem))

    def create_atomic_cas(
        self, pointers: Handle, compare: Handle, value: Handle, sem: Any, _: object
    ) -> Handle:
        """Replace elements of memory that are equal to those of a value; the old ones."""
        if not pointers.shape:
            running().spin(on_host(pointers).number)
        return _combined("cas", pointers, (value, compare), None, _words(sem))


def _words(sem: Any) -> tuple[bool, bool]:
    return ORDERS[_SEMANTICS.get(sem.name, sem.name.lower())]


def _combined(
    operation: str,
    pointers: Handle,
    values: tuple[Handle, ...],
    mask: IndexValue | None,
    words: tuple[bool, bool],
) -> Handle:
    program, block = running(), on_host(pointers)
    program.context.run_again("an atomic operation")
    scalar = block.dtype.scalar.element_ty
    if not any_used(mask):
        return IndexValue.constant(scalar, 0, block.shape)
    is_unsigned = type_name(scalar) == "uint32"
    dtype = int32 if is_unsigned else memory_type(scalar)
    check_types("tl.atomic", operation, dtype)
    plans = list(_without_repeats(block, mask, dtype))
    stored, packed = plans[0].stored, plans[0].order is None
    operands = [memory_operand(program, each, block.shape, dtype, packed=packed) for each in values]
    parts = list[AtomicPart]()
    for plan in plans:
        old = stored_parts(plan, View(stored, row_major(stored)))
        given = [stored_parts(plan, source_of(each, plan)) for each in operands]
        count_parts(program, old, block.numel)
        parts += [
            AtomicPart(tuple([each[index][0] for each in given]), *part)
            for index, part in enumerate(old)
        ]
    storage = TapeStorage(stored, dtype, pieces=True)
    # It holds its storage until Python drops it, by which the tape finds that nothing reads it.
    result = DeviceValue(scalar, TapeBlock(storage, plans[0].view), block.shape)
    program.add(
        AtomicCommand(operation, operands, storage, parts, words, partial(described_mask, mask))
    )
    if not is_unsigned:
        return result
    bits = same_bits(program, result.block, "int32", "uint32")
    assert bits is not None, "integers of 32 bits"
    return DeviceValue(scalar, bits, block.shape)


def _without_repeats(
    pointers: IndexValue, mask: IndexValue | None, dtype: DType
) -> Iterator[BlockTransfer]:
    """The transfers of a block, in which no address comes twice: that of the first element at each
    address, that of the second ones, and so on.
    """
    plan = transfer(pointers, mask, dtype)
    if plan.order is not None and plan.view.shape == pointers.shape:
        yield plan
        return
    given = np.ones(pointers.shape, bool) if mask is None else mask.array
    given = np.broadcast_to(given, pointers.shape)
    used = pointers.array[given]
    # Elements in the order of their addresses, and those at one address in their own.
    order = np.argsort(used, kind="stable")
    places = np.arange(len(used))
    is_first = np.append(True, np.diff(used[order]) != 0)
    number = np.empty_like(places)
    number[order] = places - np.maximum.accumulate(np.where(is_first, places, 0))
    if not number.any():
        yield plan
        return
    block = IndexValue(pointers.dtype, pointers.shape, array=pointers.array)
    for each in range(int(number.max()) + 1):
        chosen = np.zeros(pointers.shape, bool)
        chosen[given] = number == each
        inside = IndexValue(_language.int1, pointers.shape, array=chosen)
        yield transfer(block, inside, dtype)


def extreme(semantic: Any, name: str) -> Callable[..., Any]:
    """`tl.atomic_max` or `tl.atomic_min`: a memory compares floats, which Triton does by their
    bits.
    """
    of_integers = getattr(semantic, f"atomic_{name}")

    def combined(pointer: Any, value: Any, mask: Any, sem: Any, scope: Any) -> Any:
        if not pointer.type.scalar.is_ptr() or not pointer.type.scalar.element_ty.is_floating():
            return of_integers(pointer, value, mask, sem, scope)
        given = semantic.atom_red_typechecking_impl(pointer, value, mask, name)
        block, elements, used = given
        semantic._str_to_scope(scope)  # noqa: SLF001 - refuses other words, as Triton does
        words = _words(semantic._str_to_sem(sem))  # noqa: SLF001
        handle = _combined(name, block.handle, (elements.handle,), on_host(used.handle), words)
        return semantic.make_tensor(handle, elements.type)

    return combined
