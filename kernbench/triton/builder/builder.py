"""The builder that replaces that of Triton's interpreter."""

from collections.abc import Sequence
from math import prod
from types import FrameType
from typing import Any, NoReturn

import numpy as np

from kernbench.triton import triton_api
from kernbench.triton.builder.builder_arithmetic import BuilderArithmetic, operation
from kernbench.triton.builder.builder_atomics import BuilderAtomics
from kernbench.triton.builder.builder_memory import BuilderMemory, on_host
from kernbench.triton.builder.builder_shapes import BuilderShapes, repeated, with_axis
from kernbench.triton.builder.builder_types import BuilderTypes
from kernbench.triton.builder.program import DeviceValue, Handle, running
from kernbench.triton.indices.index_values import Affine, IndexValue
from runtime.language.caller import is_language
from runtime.language.functions import ELEMENTWISE
from runtime.language.running import MathOptions

_language = triton_api.module("triton.language")
_EXTERN = {"fabsf": "abs", "fabs": "abs", "rintf": "round", "rint": "round", "powf": "pow"}
"""Names of a GPU's library whose function has another name here."""


class Builder(BuilderTypes, BuilderArithmetic, BuilderShapes, BuilderMemory, BuilderAtomics):
    """All operations of the language: each is a number of the host side, or commands of the PE."""

    def create_histogram(self, value: Handle, bins: int, mask: Handle | None) -> Handle:
        """The number of elements in each bin: sums of comparisons."""
        block = with_axis(value, len(value.shape))
        index = IndexValue(_language.int32, (1, bins), affine=Affine(0, (0, 1)))
        shape = (*value.shape, bins)
        equal = operation("eq", repeated(block, shape), repeated(index, shape))
        if mask is not None:
            equal = operation("bitwise_and", equal, repeated(with_axis(mask, 1), shape))
        program = running()
        result = program.math("sum", (program.whole(program.in_tcm(equal)),), MathOptions(axis=0))
        return DeviceValue(_language.int32, result)

    def create_print(
        self,
        prefix: str,
        is_hex: bool,  # noqa: FBT001 - Triton's signature
        values: Sequence[Handle],
        *_: object,
    ) -> None:
        """Print elements, for which the program waits."""
        texts = list[str]()
        for value in values:
            array = on_host(value).array
            if is_hex:
                texts.append(" ".join(hex(int(each)) for each in array.reshape(-1)))
            else:
                texts.append(np.array2string(array, threshold=16, edgeitems=3))
        running().context.device_print(": ".join([prefix.strip().removesuffix(":"), *texts]))

    def create_assert(self, condition: Handle, message: str) -> None:
        """End the run if an element is false."""
        if not bool(on_host(condition).array.all()):
            running().fail(f"device_assert: {message}")

    def create_extern_elementwise(
        self, library: str, path: str, symbol: str, operands: Sequence[Handle], *_: object
    ) -> Handle:
        """A function of a GPU's library, if the vector engine has it."""
        del path
        name = symbol.removeprefix("__nv_")
        name = _EXTERN.get(name, name if name in ELEMENTWISE else name.removesuffix("f"))
        if name in ELEMENTWISE:
            return operation(name, *operands)
        return running().fail(
            f"extern_elementwise {symbol!r} of {library!r} is code of a GPU; tl.math has exp, "
            "exp2, log, log2, sqrt, rsqrt, sin, cos, erf, floor, ceil, abs and fma"
        )

    def create_inline_asm(self, *_: object) -> NoReturn:
        """No assembly of a GPU."""
        running().fail(
            "inline_asm_elementwise is assembly of a GPU; write the operation with functions of tl"
        )

    def create_dot_scaled(self, *_: object) -> NoReturn:
        """No product with scales for each block."""
        running().fail(
            "tl.dot_scaled multiplies blocks with scales of their own, which the GEMM engine has "
            "not: multiply the operands by their scales, and use tl.dot"
        )

    def create_gather(self, *_: object) -> NoReturn:
        """No gather inside TCM."""
        running().fail(
            "tl.gather selects elements of a value in TCM, for which the PE has no command; "
            "tl.load(pointer + indices) selects elements of memory"
        )


def truth(value: Handle, caller: FrameType | None) -> bool:
    """The truth value of a scalar: that of a value in TCM is waited for."""
    if prod(value.shape) != 1:
        if caller is not None and is_language(caller):
            # Triton itself tests whether an operand is given.
            return True
        raise ValueError(
            f"a block of shape {value.shape} has no truth value: use tl.where(mask, x, y), or "
            "reduce it to a scalar"
        )
    return bool(on_host(value).number)


def whole_number(value: Handle) -> Any:
    """A scalar as a Python integer."""
    return int(on_host(value).number)
