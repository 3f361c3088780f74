"""Arithmetic of the builder: on numbers of the host side there, else commands of the vector engine.

Integer types that the PE lacks are kept in wider ones, and a result keeps their low bits. Integer
quotients, remainders and shifts are computed in float64, which has every integer below 2^53.
"""

from functools import partial
from typing import Any

from kernbench.triton import triton_api
from kernbench.triton.builder.program import DeviceValue, Handle, TritonProgram, running
from kernbench.triton.indices.element_types import BITS, WIDENED, type_name, value_type
from kernbench.triton.indices.index_arithmetic import computed, converted
from kernbench.triton.indices.index_values import IndexValue, Recipe
from kernbench.triton.indices.open_integers import plain_number
from kernbench.triton.tape.tape import MathOptions, Operand, TapeBlock
from runtime.core.dtypes import float64
from runtime.language.functions import COMPARISONS
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
    if name in _EMULATED:
        result = _EMULATED[name](program, kind, *operands)
    else:
        result = program.math(name, operands)
    return wrapped(program, result, kind) if name in _WRAPPING else result


def wrapped(program: TritonProgram, block: TapeBlock, kind: str) -> TapeBlock:
    """The low bits of integers of a type that the PE lacks."""
    if kind not in WIDENED:
        return block
    bits = BITS[kind]
    if kind.startswith("u"):
        return program.math("bitwise_and", (block, 2**bits - 1))
    half = 2 ** (bits - 1)
    low = program.math("bitwise_and", (program.math("add", (block, half)), 2**bits - 1))
    return program.math("sub", (low, half))


def _quotient(program: TritonProgram, _: str, a: Operand, b: Operand) -> TapeBlock:
    exact = program.math("div", (_wide(program, a), _wide(program, b)))
    # Towards zero.
    down, up = program.math("floor", (exact,)), program.math("ceil", (exact,))
    whole = program.math("where", (program.math("lt", (exact, 0.0)), up, down))
    return program.math("cast", (whole,), MathOptions(dtype=_dtype(a, b)))


def _remainder(program: TritonProgram, kind: str, a: Operand, b: Operand) -> TapeBlock:
    product = program.math("mul", (_quotient(program, kind, a, b), b))
    return program.math("sub", (a, product))


def _shift_left(program: TritonProgram, kind: str, a: Operand, b: Operand) -> TapeBlock:
    power: Operand
    if isinstance(b, TapeBlock):
        exact = program.math("exp2", (_wide(program, b),))
        power = program.math("cast", (exact,), MathOptions(dtype=_dtype(a, b)))
    else:
        power = 2 ** int(b)
    return wrapped(program, program.math("mul", (a, power)), kind)


def _shift_right(program: TritonProgram, _: str, a: Operand, b: Operand) -> TapeBlock:
    dtype = _dtype(a, b)
    inverse: Operand
    below: Operand
    if isinstance(b, TapeBlock):
        # Powers of 2 are exact in float64.
        count = _wide(program, b)
        power = program.math("cast", (program.math("exp2", (count,)),), MathOptions(dtype=dtype))
        below = program.math("sub", (power, 1))
        inverse = program.math("exp2", (program.math("mul", (count, -1.0)),))
    else:
        below, inverse = 2 ** int(b) - 1, 2.0 ** -int(b)
    # What is left is a multiple of the power, so the quotient is an integer.
    high = program.math("sub", (a, program.math("bitwise_and", (a, below))))
    exact = program.math("mul", (_wide(program, high), inverse))
    return program.math("cast", (exact,), MathOptions(dtype=dtype))


def _high_product(program: TritonProgram, kind: str, a: Operand, b: Operand) -> TapeBlock:
    if kind != "uint32":
        program.fail(f"umulhi of {kind}: the PE has it for uint32")
    product = program.math("mul", (a, b))
    # The product less its low half is a multiple of 2^32, which float64 has exactly.
    return wrapped(program, _shift_right(program, kind, product, 32), kind)


def _wide(program: TritonProgram, each: Operand) -> Operand:
    if isinstance(each, TapeBlock):
        return program.math("cast", (each,), MathOptions(dtype=float64))
    return float(each)


def _dtype(*operands: Operand) -> Any:
    return next(each.dtype for each in operands if isinstance(each, TapeBlock))


_EMULATED = {
    "quotient": _quotient,
    "remainder": _remainder,
    "shift_left": _shift_left,
    "shift_right": _shift_right,
    "high_product": _high_product,
}


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
    return running().fail(
        f"the bits of {old} as those of {new}: the PE converts numbers, x.to({new}), and has no "
        "view of a value in TCM as another type"
    )


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
