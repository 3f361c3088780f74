"""`tl.fused`: several operations of the vector engine as one stream over their operands.

The function runs once, at the call, with a context that records its operations instead of issuing
commands. Each operation has the rounding that it has alone, so a chain gives the bits of its
operations one after the other; it saves the fetch and the store of what they pass on.
"""

from collections.abc import Callable, Sequence
from typing import cast, overload

from runtime.language.chain import Chain, ChainCall, VectorRegisters
from runtime.language.chains.chain_recorder import ChainRecorder
from runtime.language.context import (
    KernelContext,
    PendingValue,
    PendingValues,
    running_kernel,
)
from runtime.language.running import current_pe, inner_scope
from runtime.language.shapes import check_apart, checked_out
from runtime.language.value import Value

Outs = Value | tuple[Value | None, ...] | None


@overload
def fused(function: Callable[..., Value], *operands: object, out: Value | None = None) -> Value: ...
@overload
def fused(
    function: Callable[..., tuple[Value, ...]],
    *operands: object,
    out: tuple[Value | None, ...] | None = None,
) -> tuple[Value, ...]: ...
def fused(
    function: Callable[..., Value | tuple[Value, ...]], *operands: object, out: Outs = None
) -> Value | tuple[Value, ...]:
    """The value, or tuple of values, that `function(*operands)` returns, computed as one stream.

    `function` may use elementwise functions, comparisons, casts, constants and reductions, on
    `operands`, on other values in TCM and on numbers; axes of length 1 may be added, but a result
    has no parts. The engine reads the operands once for each pass: an operation on all elements
    that depends on a reduction begins a new one. Only what `function` returns is stored, to
    scratch or over `out`, of which each is one of the operands or apart from them.

    Values that are smaller than the widest one stay in vector registers; more of them than
    `pe.math.registers` hold are a `KernelError`.
    """
    call = _recorded("tl.fused", function, operands, out)
    return running_kernel().run_chain(call).wait()


@overload
def fused_async(
    function: Callable[..., Value], *operands: object, out: Value | None = None
) -> PendingValue: ...
@overload
def fused_async(
    function: Callable[..., tuple[Value, ...]],
    *operands: object,
    out: tuple[Value | None, ...] | None = None,
) -> PendingValues: ...
def fused_async(
    function: Callable[..., Value | tuple[Value, ...]], *operands: object, out: Outs = None
) -> PendingValue | PendingValues:
    """Queue a chain with the arguments of `fused`; `wait` returns its value or tuple of values.

    Chains run in the order of their calls, beside DMA and matrix products.
    """
    call = _recorded("tl.fused_async", function, operands, out)
    return running_kernel().run_chain(call)


def _recorded(
    name: str, function: Callable[..., object], operands: Sequence[object], out: Outs
) -> ChainCall:
    pe = running_kernel()
    if isinstance(pe, ChainRecorder):
        raise TypeError(f"{name} inside a fused function: call the inner function itself")
    if not callable(function):
        raise TypeError(f"{name} takes a function, not {type(function).__name__} {function!r}")
    recorder = ChainRecorder(name, pe)
    token = current_pe.set(cast("KernelContext", recorder))
    try:
        with inner_scope():
            recorder.take(operands)
            returned = function(*operands)
            is_tuple = isinstance(returned, tuple)
            values = cast("tuple[object, ...]", returned) if is_tuple else (returned,)
            chain = recorder.chain(values)
    finally:
        current_pe.reset(token)
    _check_registers(name, chain, pe.vector_registers)
    outs = out if isinstance(out, tuple) else (out,)
    if out is None:
        outs = (None,) * len(chain.plan.results)
    _check_outs(name, chain, outs)
    return ChainCall(chain, outs, is_tuple=is_tuple)


def _check_registers(name: str, chain: Chain, registers: VectorRegisters) -> None:
    kept = [chain.plan.values[number] for number in chain.plan.kept]
    needed = sum(map(registers.of, kept))
    if needed > registers.total:
        listed = ", ".join(
            f"{registers.of(each)} for {chain.values[number]!r}"
            for number, each in zip(chain.plan.kept, kept, strict=True)
        )
        raise ValueError(
            f"{name}: needs {needed} vector registers of {registers.lanes} lanes, there are "
            f"{registers.total} (pe.math.registers); values smaller than the widest one and "
            f"results of reductions stay there: {listed}; compute fewer rows at a time"
        )


def _check_outs(name: str, chain: Chain, outs: Sequence[Value | None]) -> None:
    plan = chain.plan
    if len(outs) != len(plan.results):
        raise ValueError(
            f"{name}: the function returns {len(plan.results)} values, out has {len(outs)}"
        )
    for index, (number, out) in enumerate(zip(plan.results, outs, strict=True)):
        if out is None:
            continue
        value = chain.values[number]
        checked_out(out, value.shape, value.dtype, name)
        check_apart(out, outs[:index], name)
        for source, again in enumerate(chain.sources):
            if not out.shares_bytes(again):
                continue
            if (out.address, out.extent, out.numel) != (again.address, again.extent, again.numel):
                raise ValueError(
                    f"{name}: out, {out!r}, shares bytes with the operand {again!r}; it is an "
                    "operand, or apart from all"
                )
            # A later pass would fetch elements of the result in place of those of the operand.
            if plan.last_fetch(source) > plan.stored_in(number):
                raise ValueError(
                    f"{name}: out, {out!r}, is an operand that is fetched again in pass "
                    f"{plan.last_fetch(source)}, after this result of pass "
                    f"{plan.stored_in(number)} is stored"
                )
