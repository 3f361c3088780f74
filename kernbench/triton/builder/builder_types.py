"""The types and constants of the builder, and the ids of a program."""

from functools import partial
from typing import Any, NoReturn

from kernbench.triton import triton_api
from kernbench.triton.builder.program import running
from kernbench.triton.indices.element_types import value_type
from kernbench.triton.indices.index_values import IndexValue

_language = triton_api.module("triton.language")


class _TargetOptions:
    """The options of the target that the language reads."""

    extern_libs = None
    # With it, `tl.device_assert` is compiled.
    debug = True
    sanitize_overflow = False
    arch = None
    enable_iisan = False
    supported_fp8_dtypes = ("fp8e5", "fp8e4nv")
    deprecated_fp8_dot_operand_dtypes = ()
    default_dot_input_precision = "ieee"
    allowed_dot_input_precisions = ("tf32", "tf32x3", "ieee")
    max_num_imprecise_acc_default = 0
    backend_name = "kernbench"


class BuilderTypes:
    """Types are those of the language themselves; a constant is a number of the host side."""

    arch = None

    def __init__(self) -> None:
        self.options = _TargetOptions()
        self.codegen_fns: dict[str, Any] = {
            "min_dot_size": _least_product,
            "convert_custom_types": _other_type,
        }

    def __getattr__(self, name: str) -> Any:
        kind, _, rest = name.partition("_")
        if kind == "get" and rest.endswith("_ty") and rest in _TYPES:
            dtype = getattr(_language, _TYPES[rest])
            return lambda: dtype
        if kind == "get" and rest in _CONSTANTS:
            dtype = getattr(_language, _CONSTANTS[rest])
            return partial(_constant, dtype, rest)
        if kind == "create":
            running().fail(f"{rest}: the PE has no such operation, and no command replaces it")
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}", name=name)

    def get_ptr_ty(self, element: Any, space: int) -> Any:
        """The type of pointers to elements."""
        return _language.pointer_type(element, space)

    def get_block_ty(self, dtype: Any, shape: Any) -> Any:
        """The type of blocks."""
        return _language.block_type(dtype, shape)

    def get_null_value(self, dtype: Any) -> IndexValue:
        """Zero, as a scalar or a block."""
        shape = tuple(map(int, dtype.shape)) if dtype.is_block() else ()
        zero = False if dtype.scalar.name == "int1" else 0
        return IndexValue.constant(dtype.scalar, zero, shape)

    def get_all_ones_value(self, dtype: Any) -> IndexValue:
        """All bits set."""
        scalar = dtype.scalar
        if scalar.name == "int1":
            return IndexValue.constant(scalar, True)  # noqa: FBT003 - an element
        unsigned = scalar.name.startswith("u")
        return IndexValue.constant(scalar, 2**scalar.primitive_bitwidth - 1 if unsigned else -1)

    def create_get_program_id(self, axis: int) -> IndexValue:
        """The id of the program, which the PE gives."""
        return IndexValue.constant(_language.int32, running().context.program_id(axis))

    def create_get_num_programs(self, axis: int) -> IndexValue:
        """The number of programs."""
        return IndexValue.constant(_language.int32, running().context.num_programs(axis))

    def get_cache_policy(self, *_: object) -> None:
        """Nothing: there are no caches."""

    def create_barrier(self) -> None:
        """Nothing: a program is one thread."""

    def create_assume(self, condition: Any) -> None:
        """Nothing: no compiler uses it."""


def _least_product(*_: object) -> tuple[int, int, int]:
    """GatheredRows, columns and depth of the smallest matrix product."""
    return 1, 1, 1


def _other_type(value: Any, dtype: Any, *_: object, **__: object) -> NoReturn:
    """A conversion from or to a type that no PE has."""
    for each in (value.type, dtype):
        value_type(each)
    raise TypeError(f"{value.type} to {dtype}: the PE rounds to the nearest only")


def _constant(dtype: Any, kind: str, value: Any) -> IndexValue:
    return IndexValue.constant(dtype, _element(kind, value))


def _element(kind: str, value: Any) -> Any:
    if kind == "int1":
        return bool(value)
    return float(value) if kind.startswith(("fp", "bf")) else int(value)


_TYPES = {
    "void_ty": "void",
    "half_ty": "float16",
    "bf16_ty": "bfloat16",
    "float_ty": "float32",
    "double_ty": "float64",
    "fp8e4nv_ty": "float8e4nv",
    "fp8e4b15_ty": "float8e4b15",
    "fp8e4b8_ty": "float8e4b8",
    "fp8e5_ty": "float8e5",
    "fp8e5b16_ty": "float8e5b16",
    **{
        f"{name}_ty": name
        for name in (
            *("int1", "int8", "uint8", "int16", "uint16"),
            *("int32", "uint32", "int64", "uint64"),
        )
    },
}
_CONSTANTS = {
    "fp16": "float16",
    "bf16": "bfloat16",
    "fp32": "float32",
    "fp64": "float64",
    **{
        name: name
        for name in (
            *("int1", "int8", "uint8", "int16", "uint16"),
            *("int32", "uint32", "int64", "uint64"),
        )
    },
}
