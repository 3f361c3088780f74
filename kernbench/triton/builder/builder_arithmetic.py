"""Arithmetic of the builder: of numbers of the host side, and as commands of the vector engine."""

from functools import partial
from typing import Any

from kernbench.triton import triton_api
from kernbench.triton.builder.integers import EMULATED, same_bits, wrapped
from kernbench.triton.builder.program import DeviceValue, Handle, TritonProgram, running
from kernbench.triton.indices.element_types import type_name, value_type
from kernbench.triton.indices.index_arithmetic import computed, converted
from kernbench.triton.indices.index_values import IndexValue, Recipe
from kernbench.triton.indices.open_integers import plain_number
from kernbench.triton.tape.tape import Operand, TapeBlock
from runtime.language.functions import COMPARISONS
from runtime.language.running import MathOptions
from runtime.language.value import Shape

_language = triton_api.module("triton.language")
_WRAPPING = frozenset({"add", "sub", "mul"})


def operation(name: str, *operands: Handle) -> Handle:
    """An elementwise operation, whose result has the type of the first operand, or bool."""
    is_bool = name in COMPARISONS
    given = operands[1:] if name == "where" else operands
    dtype = _language.int1 if is_bool else given[0].dtype.scalar
    if all(isinstance(each, IndexValue) for each in operands):
        recipe = Recipe(partial(operation, name), operands)
        return computed(name, dtype, tuple(map(_index, operands)), recipe)
    program = running()
    shape = max((each.shape for each in operands), key=len)
    if name == "where":
        return _selected(program, dtype, operands, shape)
    given = tuple(_operand(program, each) for each in operands)
    block = _computed(program, name, type_name(given_type(operands)), given)
    return DeviceValue(dtype, block, shape)


def given_type(operands: tuple[Handle, ...]) -> Any:
    """The type of the operands."""
    return operands[0].dtype.scalar


def _index(value: Handle) -> IndexValue:
    assert isinstance(value, IndexValue)
    return value


def _operand(program: TritonProgram, value: Handle) -> Operand:
    """The operand of a command: a number, or a block in TCM."""
    if isinstance(value, IndexValue) and (number := value.number) is not None:
        return int(number) if isinstance(number, bool) else plain_number(number)
    return program.in_tcm(value).block


def _selected(
    program: TritonProgram, dtype: Any, operands: tuple[Handle, ...], shape: Shape
) -> Handle:
    mask, *choices = operands
    if isinstance(mask, IndexValue) and (number := mask.number) is not None:
        chosen = choices[0 if number else 1]
        if isinstance(chosen, DeviceValue) and chosen.shape != shape:
            return DeviceValue(dtype, chosen.block, shape)
        return chosen
    given = [_operand(program, each) for each in choices]
    if not any(isinstance(each, TapeBlock) for each in given):
        given[0] = program.in_tcm(choices[0]).block
    return DeviceValue(dtype, program.math("where", (program.in_tcm(mask).block, *given)), shape)


def _computed(
    program: TritonProgram, name: str, kind: str, operands: tuple[Operand, ...]
) -> TapeBlock:
    if name in EMULATED:
        result = EMULATED[name](program, kind, *operands)
    else:
        result = program.math(name, operands)
    return wrapped(program, result, kind) if name in _WRAPPING else result


def _converted(value: Handle, dtype: Any) -> Handle:
    scalar = dtype.scalar
    if isinstance(value, IndexValue):
        return converted(value, scalar, Recipe(partial(_converted, dtype=dtype), (value,)))
    program, block = running(), value.block
    target = value_type(scalar)
    if block.dtype != target:
        block = program.math("cast", (block,), MathOptions(dtype=target))
    return DeviceValue(scalar, wrapped(program, block, type_name(scalar)), value.shape)


def reinterpreted(value: Handle, dtype: Any) -> Handle:
    """The same bits as elements of another type."""
    old, new = type_name(value.dtype), type_name(dtype.scalar)
    if isinstance(value, IndexValue):
        if "pointer" in (old, new):
            return IndexValue(
                dtype.scalar,
                value.shape,
                affine=value.affine,
                array=None if value.affine is not None else value.array,
            )
        if value.affine is not None and old.lstrip("u") == new.lstrip("u"):
            return converted(value, dtype, Recipe(partial(reinterpreted, dtype=dtype), (value,)))
        array = value.array.copy().view(f"{new}" if new[0] in "iu" else _numpy_name(new))
        recipe = Recipe(partial(reinterpreted, dtype=dtype), (value,))
        return IndexValue(dtype.scalar, value.shape, array=array, recipe=recipe)
    if old == new or old.lstrip("u") == new.lstrip("u"):
        return _converted(value, dtype)
    program = running()
    block = same_bits(program, value.block, old, new)
    if block is None:
        program.fail(
            f"the bits of {old} as those of {new}: the PE has no integers of 16 bits; convert to "
            "float32 before, and to int32"
        )
    return DeviceValue(dtype.scalar, block, value.shape)


def _numpy_name(name: str) -> Any:
    return {"fp16": "float16", "fp32": "float32", "fp64": "float64"}[name]


class BuilderArithmetic:
    """Elementwise operations and conversions."""

    def create_fneg(self, value: Handle) -> Handle:
        """The product with -1, which changes the sign of zero too."""
        return operation("mul", value, IndexValue.constant(value.dtype.scalar, -1.0, value.shape))

    def create_clampf(self, x: Handle, low: Handle, high: Handle, *_: object) -> Handle:
        """The nearest number in a range."""
        return operation("clamp", x, low, high)

    def create_frem(self, a: Handle, b: Handle) -> Handle:
        """The remainder of a quotient towards zero."""
        quotient = operation("div", a, b)
        zero = IndexValue.constant(a.dtype.scalar, 0.0, quotient.shape)
        whole = operation(
            "where",
            operation("lt", quotient, zero),
            operation("ceil", quotient),
            operation("floor", quotient),
        )
        return operation("sub", a, operation("mul", whole, b))

    def create_int_cast(self, value: Handle, dtype: Any, *_: object) -> Handle:
        """Integers of another type."""
        return _converted(value, dtype)

    def create_fp_to_fp(self, value: Handle, dtype: Any, *_: object) -> Handle:
        """Floating-point numbers of another type, rounded to the nearest."""
        return _converted(value, dtype)

    def create_bitcast(self, value: Handle, dtype: Any) -> Handle:
        """The same bits as another type."""
        return reinterpreted(value, dtype)

    create_ptr_to_int = create_bitcast


_OPERATIONS = {
    "add": "fadd add",
    "sub": "fsub sub",
    "mul": "fmul mul",
    "div": "fdiv precise_divf approx_divf",
    "quotient": "sdiv udiv",
    "remainder": "srem urem",
    "minimum": "minsi minui minimumf minnumf",
    "maximum": "maxsi maxui maximumf maxnumf",
    "bitwise_and": "and",
    "bitwise_or": "or",
    "bitwise_xor": "xor",
    "shift_left": "shl",
    "shift_right": "lshr ashr",
    "high_product": "umulhi",
    "where": "select",
    "fma": "fma",
    "le": "icmpSLE icmpULE fcmpOLE fcmpULE",
    "lt": "icmpSLT icmpULT fcmpOLT fcmpULT",
    "ge": "icmpSGE icmpUGE fcmpOGE fcmpUGE",
    "gt": "icmpSGT icmpUGT fcmpOGT fcmpUGT",
    "eq": "icmpEQ fcmpOEQ fcmpUEQ",
    "ne": "icmpNE fcmpONE fcmpUNE",
    "abs": "fabs iabs",
    "sqrt": "sqrt precise_sqrt",
    **{name: name for name in ("exp", "exp2", "log", "log2", "rsqrt", "sin", "cos")},
    **{name: name for name in ("floor", "ceil", "erf")},
}
"""The names of the builder for each operation of the vector engine."""
_CONVERSIONS = "si_to_fp ui_to_fp fp_to_si fp_to_ui fp_ext fp_trunc"


def _method(name: str) -> Any:
    def create(_: object, *operands: Handle) -> Handle:
        return operation(name, *operands)

    return create


for _operation, _names in _OPERATIONS.items():
    for _name in _names.split():
        setattr(BuilderArithmetic, f"create_{_name}", _method(_operation))
for _name in _CONVERSIONS.split():
    setattr(BuilderArithmetic, f"create_{_name}", BuilderArithmetic.create_int_cast)
