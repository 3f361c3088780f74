"""Elementwise functions of tensors: `torch.add`, `torch.exp`, `torch.eq` and the like.

Each function launches a shipped kernel on every PE that holds elements of the result and returns at
once. The result lies where the operand of its shape lies; other operands are loaded through their
virtual addresses. Types are promoted and shapes broadcast as in PyTorch. A result is computed
exactly and rounded once to float32 and then to its type.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import NoReturn, cast

import numpy as np

from runtime.core.dtypes import DType, boolean, float32, uint8
from runtime.core.requests import PerPe
from runtime.language.value import Pointer
from runtime.torch.arithmetic.elementwise_kernel import Formula, Loaded, elementwise
from runtime.torch.arithmetic.promotion import (
    as_element,
    check_computable,
    inner_type,
    is_number,
    kind,
    result_type,
    type_name,
    wrapped,
)
from runtime.torch.arithmetic.regions import regions
from runtime.torch.arithmetic.result_placement import placed, placed_like
from runtime.torch.ops import launch_on
from runtime.torch.rank_state import running_rank
from runtime.torch.tensors.creation import full
from runtime.torch.tensors.stored_tensor import StoredTensor
from runtime.torch.tensors.tensor import Tensor

Operand = StoredTensor | float
_ALIGNMENT_BYTES = 256
"""Scratch that the alignment of the values of a block may take."""
_OF_BOOL = {
    "add": "maximum",
    "mul": "minimum",
    "bitwise_or": "maximum",
    "bitwise_and": "minimum",
    "bitwise_xor": "ne",
}
"""Operations of bool: a sum is `or`, a product is `and`."""


def add(input: Operand, other: Operand, *, alpha: float = 1, out: Tensor | None = None) -> Tensor:  # noqa: A002 - PyTorch's name
    """`input + alpha * other`."""
    return _scaled("add", input, other, alpha, out)


def sub(input: Operand, other: Operand, *, alpha: float = 1, out: Tensor | None = None) -> Tensor:  # noqa: A002
    """`input - alpha * other`; not with a bool tensor."""
    of_bool = [_type_of(each) == boolean for each in (input, other)]
    if np.any(of_bool):
        which, use = ("two bool tensors", "`^`") if np.all(of_bool) else ("a bool tensor", "`~`")
        raise NotImplementedError(
            f"Subtraction, the `-` operator, with {which} is not supported. Use the {use} "
            "operator, or convert with x.int()."
        )
    return _scaled("sub", input, other, alpha, out)


def mul(input: Operand, other: Operand, *, out: Tensor | None = None) -> Tensor:  # noqa: A002
    """`input * other`."""
    return _computed("mul", "mul", (input, other), out=out)


def div(input: Operand, other: Operand, *, out: Tensor | None = None) -> Tensor:  # noqa: A002
    """`input / other`; of integers float32. A quotient by 0 is infinite or NaN."""
    return _computed("div", "div", (input, other), out=out, floating=True)


def maximum(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:  # noqa: A002
    """The greater of two elements; NaN where either is NaN."""
    return _computed("maximum", "maximum", _tensors("maximum", input, other), out=out)


def minimum(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:  # noqa: A002
    """The lesser of two elements; NaN where either is NaN."""
    return _computed("minimum", "minimum", _tensors("minimum", input, other), out=out)


def neg(input: Tensor, *, out: Tensor | None = None) -> Tensor:  # noqa: A002
    """`-input`."""
    (x,) = _tensors("neg", input)
    if x.dtype == boolean:
        raise NotImplementedError(
            "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to "
            "invert a mask, use the `~` operator instead."
        )
    # An unsigned type has no -1, a product keeps the sign of a zero.
    if x.dtype == uint8:
        return _computed("neg", "sub", (0, x), out=out)
    return _computed("neg", "mul", (x, -1), out=out)


def pow(input: Tensor, exponent: float, *, out: Tensor | None = None) -> Tensor:  # noqa: A001, A002 - PyTorch's names
    """`input ** exponent` for the exponents 1, 2 and 0.5, which the vector engine has."""
    (x,) = _tensors("pow", input)
    if not is_number(exponent):
        _must_be("pow", "exponent", 2, exponent, "Number")
    if exponent == 2:
        return _computed("pow", "mul", (x, x, exponent), out=out)
    if exponent == 1:
        return _computed("pow", "", (x, exponent), out=out)
    if exponent == 0.5:
        return _computed("pow", "sqrt", (x, exponent), out=out, floating=True)
    raise NotImplementedError(
        f"pow(): the vector engine has the exponents 0.5, 1 and 2, not {exponent}; multiply, or "
        "use torch.exp and torch.log"
    )


def clamp(
    input: Tensor,  # noqa: A002
    min: float | None = None,  # noqa: A002
    max: float | None = None,  # noqa: A002
    *,
    out: Tensor | None = None,
) -> Tensor:
    """Elements below `min` become `min`, above `max` become `max`; both are numbers."""
    (x,) = _tensors("clamp", input)
    bounds = [each for each in (min, max) if each is not None]
    if not bounds:
        raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    for position, (bound, each) in enumerate((("min", min), ("max", max)), 2):
        if each is not None and not is_number(each):
            _must_be("clamp", bound, position, each, "Number")
    dtype = result_type((x, *bounds))
    if kind(dtype) == 1:
        # A bound beyond the range of the type bounds nothing; wrapped round, it would.
        limits = np.iinfo(dtype.numpy.name)
        bounds = [int(np.clip(int(each), limits.min, limits.max)) for each in bounds]
    name = "clamp" if len(bounds) == 2 else "maximum" if max is None else "minimum"
    return _computed("clamp", name, (x, *bounds), out=out)


def converted(input: Tensor, dtype: DType, *, out: Tensor | None = None) -> Tensor:  # noqa: A002
    """The elements in another type, computed on the device: a copy that is placed like `input`."""
    target = placed_like(input, input.shape, dtype) if out is None else out
    _launch("to", Formula("", (Loaded(0),), input.dtype), target, [input])
    return target


def bitwise_not(input: Tensor, *, out: Tensor | None = None) -> Tensor:  # noqa: A002
    """`~input`, of integers and bool."""
    (x,) = _tensors("bitwise_not", input)
    return _bits("bitwise_xor", "bitwise_not")(x, x.dtype == boolean or -1, out=out)


def _bits(name: str, function: str = "") -> Callable[..., Tensor]:
    def apply(input: Operand, other: Operand, *, out: Tensor | None = None) -> Tensor:  # noqa: A002
        called = function or name
        dtype = result_type(_checked(called, (input, other)))
        if kind(dtype) == 2:
            raise NotImplementedError(f"\"{called}\" not implemented for '{type_name(dtype)}'")
        return _computed(called, name, (input, other), out=out)

    apply.__name__ = apply.__qualname__ = name
    return apply


bitwise_and = _bits("bitwise_and")
bitwise_or = _bits("bitwise_or")
bitwise_xor = _bits("bitwise_xor")


def filled(shape: tuple[int, ...], value: float, dtype: DType) -> Tensor:
    """A new tensor with the same value everywhere."""
    return full(shape, value, dtype=dtype)


def _unary(name: str, described: str, *, integers: bool = False) -> Callable[..., Tensor]:
    def function(input: Tensor, *, out: Tensor | None = None) -> Tensor:  # noqa: A002
        (x,) = _tensors(name, input)
        if integers and x.dtype == boolean:
            raise NotImplementedError(f"Boolean inputs not supported for {name}")
        return _computed(name, name, (x,), out=out, floating=not integers)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = described
    return function


exp = _unary("exp", "The exponential; of integers float32.")
log = _unary("log", "The natural logarithm; -inf at 0, NaN below.")
sqrt = _unary("sqrt", "The square root; NaN below 0.")
sin = _unary("sin", "The sine of radians.")
cos = _unary("cos", "The cosine of radians.")
tanh = _unary("tanh", "The hyperbolic tangent.")
sigmoid = _unary("sigmoid", "`1 / (1 + exp(-x))`.")
relu = _unary("relu", "`max(x, 0)`.", integers=True)
abs = _unary("abs", "The absolute value.", integers=True)  # noqa: A001 - PyTorch's name


def _comparison(name: str, described: str) -> Callable[..., Tensor]:
    def function(input: Operand, other: Operand, *, out: Tensor | None = None) -> Tensor:  # noqa: A002
        return _computed(name, name, (input, other), out=out, compares=True)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"`{described}`, elementwise, as a bool tensor."
    return function


eq = _comparison("eq", "input == other")
ne = _comparison("ne", "input != other")
lt = _comparison("lt", "input < other")
le = _comparison("le", "input <= other")
gt = _comparison("gt", "input > other")
ge = _comparison("ge", "input >= other")


def _scaled(name: str, a: Operand, b: Operand, alpha: float, out: Tensor | None) -> Tensor:
    if not is_number(alpha):
        _must_be(name, "alpha", 3, alpha, "Number")
    if alpha == 1:
        return _computed(name, name, (a, b), out=out)
    dtype = result_type(_checked(name, (a, b)))
    if kind(dtype) < 2 and not float(alpha).is_integer():
        raise RuntimeError(
            "For integral input tensors, argument alpha must not be a floating point number."
        )
    if not isinstance(b, StoredTensor):
        return _computed(name, name, (a, b * alpha), out=out)
    # The sign of an unsigned type does not matter: its products wrap round.
    return _computed(name, "fma", (b, alpha if name == "add" else -alpha, a), out=out)


def _computed(
    function: str,
    name: str,
    operands: Sequence[object],
    *,
    out: Tensor | None = None,
    floating: bool = False,
    compares: bool = False,
) -> Tensor:
    """Launch one operation; the result is `out`, or a new tensor."""
    checked = _checked(function, operands)
    tensors = list(dict.fromkeys(each for each in checked if isinstance(each, StoredTensor)))
    shape = broadcast_shape([each.shape for each in tensors])
    dtype = result_type(checked)
    if floating and kind(dtype) < 2:
        dtype = float32
    if compares:
        # Two numbers that are one element are equal: `half == 0.1` compares with a half.
        checked = tuple(as_element(each, dtype) for each in checked)
    inner = inner_type(dtype, checked)
    if inner == boolean and name in _OF_BOOL:
        name = _OF_BOOL[name]
    for each in checked:
        if not isinstance(each, StoredTensor) and kind(inner) < 2 and int(float(each)) != each:
            raise RuntimeError(f"{function}(): {each} is beyond 2^53: engines take float64 numbers")
    # The second operand of `pow` only promotes.
    used = checked[:2] if name == "mul" else checked[:1] if name in ("", "sqrt") else checked
    formula = Formula(
        name,
        tuple(
            Loaded(_position(tensors, each))
            if isinstance(each, StoredTensor)
            else wrapped(each, inner)
            for each in used
        ),
        inner,
    )
    result = boolean if compares else dtype
    target = placed(tensors, shape, result) if out is None else _target(out, shape, result, tensors)
    _launch(function, formula, target, tensors)
    return target


def _position(tensors: Sequence[StoredTensor], tensor: StoredTensor) -> int:
    # By identity: `index` would compare elements.
    return next(number for number, each in enumerate(tensors) if each is tensor)


def _launch(
    function: str, formula: Formula, out: StoredTensor, tensors: Sequence[StoredTensor]
) -> None:
    parts = regions(function, out, tensors)
    if not parts:
        return
    scratch = running_rank().topology.kernel_scratch_bytes - _ALIGNMENT_BYTES
    nbytes = formula.scratch_bytes([each.dtype for each in tensors], out.dtype)
    pointers = tuple(Pointer(each.address, each.dtype) for each in tensors)
    arguments = (
        formula,
        PerPe(parts),
        scratch // nbytes,
        Pointer(out.address, out.dtype),
        pointers,
    )
    used = cast("list[Tensor]", list(dict.fromkeys((out, *tensors))))
    launch_on(function, elementwise, arguments, used, list(parts), queue_table="")


def broadcast_shape(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """The common shape; `RuntimeError` with PyTorch's text if there is none."""
    whole = shapes[0]
    for shape in shapes[1:]:
        axes = max(len(whole), len(shape))
        a, b = ((1,) * (axes - len(each)) + each for each in (whole, shape))
        for axis in reversed(range(axes)):
            if a[axis] != b[axis] and 1 not in (a[axis], b[axis]):
                raise RuntimeError(
                    f"The size of tensor a ({a[axis]}) must match the size of tensor b ({b[axis]}) "
                    f"at non-singleton dimension {axis}"
                )
        whole = tuple(y if x == 1 else x for x, y in zip(a, b, strict=True))
    return whole


def _target(
    out: Tensor, shape: tuple[int, ...], result: DType, tensors: Sequence[StoredTensor]
) -> Tensor:
    """`out`, if it can take the result."""
    if out.shape != shape:
        raise RuntimeError(
            f"output with shape {list(out.shape)} doesn't match the broadcast shape {list(shape)}"
        )
    if kind(result) > kind(out.dtype):
        raise RuntimeError(
            f"result type {type_name(result)} can't be cast to the desired output type "
            f"{type_name(out.dtype)}"
        )
    for each in tensors:
        if each.storage is not out.storage:
            continue
        first, second = sorted([(out.address, out.nbytes), (each.address, each.nbytes)])
        if (first != second or out.shape != each.shape) and first[0] + first[1] > second[0]:
            raise RuntimeError(
                "unsupported operation: some elements of the input tensor and the written-to "
                "tensor refer to a single memory location. Please clone() the tensor before "
                "performing the operation."
            )
    return out


def _checked(function: str, operands: Sequence[object]) -> tuple[Operand, ...]:
    """The operands, which are tensors of one rank and numbers."""
    names = ("input", "other", "alpha")
    for position, each in enumerate(operands, 1):
        if not (isinstance(each, StoredTensor) or is_number(each)):
            _must_be(function, names[position - 1], position, each)
    if not any(isinstance(each, StoredTensor) for each in operands):
        _must_be(function, "input", 1, operands[0])
    sips = {each.shards[0].spec.sip for each in operands if isinstance(each, StoredTensor)}
    sips.add(running_rank().rank)
    if len(sips) > 1:
        first, second, *_ = sorted(sips)
        raise RuntimeError(
            "Expected all tensors to be on the same device, but found at least two devices, "
            f"ahbm:{first} and ahbm:{second}!"
        )
    for each in operands:
        if isinstance(each, StoredTensor):
            check_computable(function, each.dtype)
        if isinstance(each, int) and not -(1 << 63) <= each < 1 << 64:
            raise OverflowError(f"int too big to convert: {each} is beyond 64 bits")
    plain = (bool(cast("int", each)) if isinstance(each, np.bool) else each for each in operands)
    return tuple(cast("Iterable[Operand]", plain))


def _tensors(function: str, *operands: object) -> list[Tensor]:
    for position, each in enumerate(operands, 1):
        if not isinstance(each, StoredTensor):
            _must_be(function, ("input", "other")[position - 1], position, each)
    return list(cast("Sequence[Tensor]", operands))


def _type_of(operand: object) -> DType | None:
    return operand.dtype if isinstance(operand, StoredTensor) else None


def _must_be(
    function: str, name: str, position: int, given: object, kind: str = "Tensor"
) -> NoReturn:
    advice = "; make a tensor of it with torch.from_numpy" if isinstance(given, np.ndarray) else ""
    given_type = type(cast("object", given)).__name__
    raise TypeError(
        f"{function}(): argument '{name}' (position {position}) must be {kind}, not "
        f"{given_type}{advice}"
    )
