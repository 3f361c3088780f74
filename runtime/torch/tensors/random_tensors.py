"""Random tensors: `rand`, `randn`, `randint`, `randperm`, from one seeded stream per rank.

The numbers are drawn on the host and written to the device. They depend on the seed and on the
calls before, not on the number of processes: without `manual_seed` the seed is the number of the
rank. The numbers are not those of PyTorch. A run without data draws none.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Unpack, cast

import numpy as np

from runtime.core import dtypes
from runtime.core.array_rng import array_stream
from runtime.core.dtypes import DType, float32, float64, int64
from runtime.device.memory.sizes import shape_of
from runtime.device.rank.rank_state import running_rank
from runtime.device.streams.device import device as Device  # noqa: N812 - PyTorch's class has a small letter
from runtime.language.value import Array
from runtime.model.placement import Placement
from runtime.torch.tensors.creation import checked_tensor
from runtime.torch.tensors.creation_options import Keywords, Options, checked_options
from runtime.torch.tensors.tensor import Tensor

if TYPE_CHECKING:
    from runtime.core.array_rng import ArrayStream

_Device = Device | str | int | None
_SEED_BITS = 64
# Digits of a fraction below 1: more would be rounded, to 1 in the worst case.
_DIGITS = {dtypes.float16: 11, dtypes.bfloat16: 8, dtypes.float32: 24, dtypes.float64: 53}


class Generator:
    """A stream of random numbers; the constructors take one as `generator=`."""

    def __init__(self, device: _Device = None) -> None:
        """The stream of seed 0. The device is ignored: numbers are drawn on the host."""
        del device
        self._seed, self._stream = 0, array_stream(0)

    def manual_seed(self, seed: int) -> "Generator":
        """Start again with a seed of up to 64 bits; `RuntimeError` for a longer one."""
        if not isinstance(seed, int):  # pyright: ignore[reportUnnecessaryIsInstance] - user code is not type-checked
            raise TypeError(f"manual_seed expected a long, but got {type(seed).__name__}")
        if not -(1 << _SEED_BITS - 1) <= seed < 1 << _SEED_BITS:
            raise RuntimeError(f"Overflow when unpacking long: the seed {seed} has over 64 bits")
        # As in PyTorch, a negative seed is the unsigned number of equal bits.
        self._seed = seed % (1 << _SEED_BITS)
        self._stream = array_stream(self._seed)
        return self

    def initial_seed(self) -> int:
        """The seed."""
        return self._seed

    @property
    def stream(self) -> "ArrayStream":
        """The stream at its present state."""
        return self._stream


def default_generator() -> Generator:
    """The generator of the rank that runs; its seed is the number of the rank at first."""
    state = running_rank()
    if state.generator is None:
        state.generator = Generator().manual_seed(state.rank)
    return cast("Generator", state.generator)


def manual_seed(seed: int) -> Generator:
    """Start the stream of this rank again with a seed. Equal seeds give equal numbers on all ranks,
    as in PyTorch.
    """
    return default_generator().manual_seed(seed)


def initial_seed() -> int:
    """The seed of this rank's stream."""
    return default_generator().initial_seed()


def rand(
    *size: int | Sequence[int],
    generator: Generator | None = None,
    **keywords: Unpack[Keywords],
) -> Tensor:
    """Uniform numbers in [0, 1)."""
    options = checked_options("rand", keywords)
    return _drawn("rand", shape_of("rand", size), options, generator, _uniform)


def randn(
    *size: int | Sequence[int],
    generator: Generator | None = None,
    **keywords: Unpack[Keywords],
) -> Tensor:
    """Numbers of the normal distribution with mean 0 and variance 1."""
    options = checked_options("randn", keywords)
    return _drawn("randn", shape_of("randn", size), options, generator, _normal)


def rand_like(
    input: Tensor,  # noqa: A002 - PyTorch's name
    **keywords: Unpack[Keywords],
) -> Tensor:
    """`rand` with the shape, type and placement of `input`."""
    options = checked_options("rand_like", keywords)
    other = checked_tensor("rand_like", input)
    return _drawn("rand_like", other.shape, options.of(other), None, _uniform)


def randn_like(
    input: Tensor,  # noqa: A002 - PyTorch's name
    **keywords: Unpack[Keywords],
) -> Tensor:
    """`randn` with the shape, type and placement of `input`."""
    options = checked_options("randn_like", keywords)
    other = checked_tensor("randn_like", input)
    return _drawn("randn_like", other.shape, options.of(other), None, _normal)


def randint(
    *bounds_and_size: int | Sequence[int],
    generator: Generator | None = None,
    dtype: DType | None = None,
    dp: Placement | None = None,
    device: _Device = None,
    requires_grad: bool = False,
    **named: object,
) -> Tensor:
    """Integers of [low, high), of int64 by default: `randint(high, size)` or `randint(low, high,
    size)`. `RuntimeError` for an empty range.
    """
    given: Keywords = {
        "dtype": dtype,
        "dp": dp,
        "device": device,
        "requires_grad": requires_grad,
    }
    options = checked_options("randint", given)
    low, high, size = _bounds(bounds_and_size, named)
    if low >= high:
        raise RuntimeError(
            f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}"
        )
    element = options.dtype or int64
    if not (element.holds(low) and element.holds(high - 1)):
        raise RuntimeError(f"from or to - 1 is out of bounds for {element!r}: {low}, {high - 1}")

    def draw(stream: "ArrayStream", shape: tuple[int, ...], dtype: DType) -> Array:
        return stream.integers(low, high, shape, np.int64).astype(dtype.numpy)

    return _drawn("randint", shape_of("randint", (size,)), options, generator, draw, int64)


def randperm(
    n: int,
    *,
    generator: Generator | None = None,
    **keywords: Unpack[Keywords],
) -> Tensor:
    """The integers 0 to n - 1 in random order, of int64 by default."""
    options = checked_options("randperm", keywords)

    def draw(stream: "ArrayStream", shape: tuple[int, ...], dtype: DType) -> Array:
        return stream.permutation(shape[0]).astype(dtype.numpy)

    return _drawn("randperm", shape_of("randperm", (n,)), options, generator, draw, int64)


def _drawn(
    function: str,
    shape: tuple[int, ...],
    options: Options,
    generator: Generator | None,
    draw: "Callable[[ArrayStream, tuple[int, ...], DType], Array]",
    dtype: DType = float32,
) -> Tensor:
    element = options.dtype or dtype
    if draw in (_uniform, _normal) and element not in _DIGITS:
        reason = "draw float32 and convert" if element.is_floating_point else "it has no fractions"
        raise RuntimeError(f'"{function}" not implemented for {element!r}: {reason}')
    new = options.new(shape, element)
    if not running_rank().data:
        return new.copy_(0)
    stream = (generator or default_generator()).stream
    return new.copy_(draw(stream, shape, element))


def _uniform(stream: "ArrayStream", shape: tuple[int, ...], dtype: DType) -> Array:
    digits = _DIGITS[dtype]
    return (stream.integers(0, 1 << digits, shape) / float(1 << digits)).astype(dtype.numpy)


def _normal(stream: "ArrayStream", shape: tuple[int, ...], dtype: DType) -> Array:
    kind = np.float64 if dtype == float64 else np.float32
    return stream.standard_normal(shape, kind).astype(dtype.numpy)


def _bounds(given: Sequence[object], named: dict[str, object]) -> tuple[int, int, Sequence[int]]:
    """`low`, `high` and `size` of a call of `randint`, which is overloaded as in PyTorch."""
    count = len(given) + len(named)
    names = ("low", "high", "size") if count == 3 or "low" in named else ("high", "size")
    free = [name for name in names if name not in named]
    if unknown := [name for name in named if name not in names]:
        raise TypeError(f"randint() got an unexpected keyword argument '{unknown[0]}'")
    if len(free) != len(given):
        raise TypeError(
            "randint() received an invalid combination of arguments: it takes (high, size) or "
            f"(low, high, size), and {count} were given"
        )
    chosen: dict[str, object] = {"low": 0, **dict(zip(free, given, strict=True)), **named}
    for name in ("low", "high"):
        if not isinstance(chosen[name], int):
            problem = f"must be int, not {type(chosen[name]).__name__}"
            raise TypeError(f"randint(): argument '{name}' {problem}")
    return (
        cast("int", chosen["low"]),
        cast("int", chosen["high"]),
        cast("tuple[int]", chosen["size"]),
    )
