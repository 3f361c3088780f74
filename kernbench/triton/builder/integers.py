"""Integer operations that the vector engine lacks, by operations that it has.

Integer types that the PE lacks are kept in wider ones, and a result keeps their low bits. Quotients
and shifts are computed in float64, which has every integer below 2^53; those of 64 bits are
corrected by their remainders, or computed in halves.
"""

from collections.abc import Callable, Mapping

from kernbench.triton.builder.program import TritonProgram
from kernbench.triton.indices.element_types import BITS, DTYPES, WIDENED
from kernbench.triton.tape.tape import Operand, TapeBlock
from runtime.core.dtypes import DType, float64, int32, int64
from runtime.language.running import MathOptions


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


def _quotient(program: TritonProgram, kind: str, a: Operand, b: Operand) -> TapeBlock:
    if kind == "int64":
        return _long_quotient(program, a, b)
    return _short_quotient(program, a, b)


def _short_quotient(program: TritonProgram, a: Operand, b: Operand) -> TapeBlock:
    exact = program.math("div", (_wide(program, a), _wide(program, b)))
    # Towards zero.
    down, up = program.math("floor", (exact,)), program.math("ceil", (exact,))
    whole = program.math("where", (program.math("lt", (exact, 0.0)), up, down))
    return program.math("cast", (whole,), MathOptions(dtype=_dtype(a, b)))


def _long_quotient(program: TritonProgram, a: Operand, b: Operand) -> TapeBlock:
    """The quotient of integers of 64 bits, whose float64 is rounded.

    The quotient of the remainder corrects the first one, to a remainder of less than twice the
    divisor; then one step towards zero or away from it is left.
    """

    def math(name: str, *operands: Operand) -> TapeBlock:
        return program.math(name, operands)

    first = _short_quotient(program, a, b)
    left = math("sub", a, math("mul", first, b))
    second = math("add", first, _short_quotient(program, left, b))
    left = math("sub", a, math("mul", second, b))
    zero = 0
    falls = math("ne", math("lt", a, zero), _is_negative(program, b))
    step = math("where", falls, _constant(program, -1), _constant(program, 1))
    size = abs(int(b)) if not isinstance(b, TapeBlock) else math("abs", b)
    is_over = math("ge", math("abs", left), size)
    is_wrong = math("ne", math("lt", left, zero), math("lt", a, zero))
    is_behind = math("bitwise_and", is_wrong, math("ne", left, zero))
    more = math("where", is_over, step, _constant(program, 0))
    less = math("where", is_behind, step, _constant(program, 0))
    return math(
        "add", second, math("sub", math("where", is_behind, _constant(program, 0), more), less)
    )


def _is_negative(program: TritonProgram, b: Operand) -> TapeBlock:
    if isinstance(b, TapeBlock):
        return program.math("lt", (b, 0))
    return program.math("lt", (_constant(program, int(b)), 0))


def _constant(program: TritonProgram, number: int) -> TapeBlock:
    return program.math("full", (number,), MathOptions(dtype=int64, shape=(1,)))


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


def _shift_right(program: TritonProgram, kind: str, a: Operand, b: Operand) -> TapeBlock:
    if kind == "int64" and not isinstance(b, TapeBlock):
        return _long_shift_right(program, a, int(b))
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
    # The rest is a multiple of the power, so the quotient is an integer.
    high = program.math("sub", (a, program.math("bitwise_and", (a, below))))
    exact = program.math("mul", (_wide(program, high), inverse))
    return program.math("cast", (exact,), MathOptions(dtype=dtype))


def _long_shift_right(program: TritonProgram, a: Operand, count: int) -> TapeBlock:
    """A shift of 64 bits in halves of 32, of which float64 has every one."""
    half = 2**32
    low = program.math("bitwise_and", (a, half - 1))
    high = _scaled(program, program.math("sub", (a, low)), 2.0**-32)
    if count >= 32:
        return _shift_right(program, "int32", high, count - 32)
    upper = program.math("mul", (high, 2 ** (32 - count)))
    return program.math("add", (upper, _shift_right(program, "int32", low, count)))


def _scaled(program: TritonProgram, block: Operand, factor: float) -> TapeBlock:
    """Multiples of an inverse power of 2, by it."""
    exact = program.math("mul", (_wide(program, block), factor))
    return program.math("cast", (exact,), MathOptions(dtype=int64))


def same_bits(program: TritonProgram, block: TapeBlock, old: str, new: str) -> TapeBlock | None:
    """The bits of numbers of type `old` as those of `new`; None where the PE has no such type."""
    if BITS.get(old, 0) == 16 or BITS.get(new, 0) == 16:
        return None
    if old == "uint32":
        block = program.math("cast", (block,), MathOptions(dtype=int32))
    target = int32 if new == "uint32" else DTYPES[new]
    if block.dtype != target:
        block = program.math("bitcast", (block,), MathOptions(dtype=target))
    if new == "uint32":
        wide = program.math("cast", (block,), MathOptions(dtype=int64))
        return program.math("bitwise_and", (wide, 2**32 - 1))
    return block


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


def _dtype(*operands: Operand) -> DType:
    return next(each.dtype for each in operands if isinstance(each, TapeBlock))


EMULATED: Mapping[str, Callable[[TritonProgram, str, Operand, Operand], TapeBlock]] = {
    "quotient": _quotient,
    "remainder": _remainder,
    "shift_left": _shift_left,
    "shift_right": _shift_right,
    "high_product": _high_product,
}
