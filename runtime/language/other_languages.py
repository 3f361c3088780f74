"""Names and keywords of Triton and CUDA which this language lacks, each with its substitute.

A block here is exact: a load and a store have a shape, so there is no mask, and an address is a
number, so no block of addresses.
"""

import re
from collections.abc import Iterable, Mapping
from inspect import Parameter, isfunction, signature
from types import FrameType, ModuleType

from runtime.core.errors import nearest

_PLAIN = "a kernel is a plain function; remove the decorator"
_LAUNCH = "torch.launch(name, kernel, x, y, n, grid=(programs,))"
_NUMBER = "every number that a launch passes is a constant; annotate it with int"
_BLOCK = "tl.load(p + start, shape, strides) and tl.store(p + start, value, strides) move a block"
_RANGE = "use range(...): a kernel is Python, and its loops take no time"
_RANDOM = "draw on the host, with torch.rand or torch.randn, and load the elements"
_NO_OVERLAP = "a scan has one operator: tl.cumsum"
NAMES: Mapping[str, str] = {
    "jit": f"{_PLAIN}, and launch it with {_LAUNCH}",
    "autotune": f"{_PLAIN}, and pass the sizes as arguments of the launch",
    "heuristics": f"{_PLAIN}, and pass the sizes as arguments of the launch",
    "constexpr": _NUMBER,
    "num_warps": "a PE has no warps; leave it out",
    "num_stages": "start loads early with tl.load_async; leave it out",
    "make_block_ptr": _BLOCK,
    "make_tensor_descriptor": _BLOCK,
    "advance": "a pointer moves with p + elements",
    "static_range": _RANGE,
    "range": _RANGE,
    "static_assert": "use assert",
    "static_print": "use print",
    "debug_barrier": "a PE has no threads to wait for; leave it out",
    "multiple_of": "leave it out: nothing is inferred from it",
    "max_contiguous": "leave it out: nothing is inferred from it",
    "assume": "leave it out: nothing is inferred from it",
    "broadcast_to": "values broadcast by themselves; tl.zeros(shape, dtype) + x makes a block",
    "broadcast": "values broadcast by themselves",
    "view": "use tl.reshape(x, shape)",
    "ravel": "use tl.reshape(x, x.numel)",
    "permute": "use tl.trans(x)",
    "join": "use tl.cat([a, b])",
    "fdiv": "use a / b",
    "div_rn": "use a / b",
    "sqrt_rn": "use tl.sqrt(x)",
    "umulhi": "multiply values of type tl.int64",
    "cumprod": _NO_OVERLAP,
    "associative_scan": _NO_OVERLAP,
    "reduce": "use tl.sum, tl.max or tl.min",
    "xor_sum": "use tl.sum, tl.max or tl.min",
    "sort": "sort on the host",
    "dot_scaled": "scale with * and use tl.dot(a, b)",
    "inline_asm_elementwise": "use the functions of tl",
    "tensor": "use tl.Value in annotations",
    "dtype": "use tl.DType in annotations",
    "pointer_type": "use tl.Pointer in annotations",
    "math": "its functions are those of tl, such as tl.exp(x)",
    "extra": "its functions are those of tl, such as tl.exp(x)",
    "libdevice": "its functions are those of tl, such as tl.exp(x)",
    "rand": _RANDOM,
    "randn": _RANDOM,
    "randint": _RANDOM,
    "thread_id": "a PE has no threads; tl.program_id(axis) is its number",
    "syncthreads": "a PE has no threads to wait for; leave it out",
    "shared": "values of tl.load lie in the TCM of the PE",
    "int16": "use tl.int32",
    "uint16": "use tl.int32",
    "uint32": "use tl.int64",
    "uint64": "use tl.int64",
    "float": "use tl.float32",
} | {
    f"atomic_{name}": f"use tl.atomic({name!r}, pointer, value)"
    for name in ("add", "max", "min", "and", "or", "xor", "xchg", "cas")
}
"""Advice for names of `tl`."""

_EXACT = (
    "a block is exact and needs no mask; {call} the elements that exist, as in "
    "tl.{call}(p + start, min(BLOCK, n - start){rest})"
)
_LEFT_OUT = "leave it out: it changes no value"
_KEYWORDS: Mapping[str, str] = {
    "other": "no element is masked; join a block with tl.full(shape, value, dtype) by tl.cat",
    "boundary_check": "a block is exact: its shape has the elements that exist",
    "padding_option": "a block is exact: its shape has the elements that exist",
    "cache_modifier": "there are no caches; leave it out",
    "eviction_policy": "there are no caches; leave it out",
    "volatile": _LEFT_OUT,
    "allow_tf32": _LEFT_OUT,
    "input_precision": _LEFT_OUT,
    "max_num_imprecise_acc": _LEFT_OUT,
    "return_indices": "use tl.argmax or tl.argmin",
    "sem": "it is of tl.atomic; a store is ordered by tl.wait and tl.barrier",
}
_MASKED = {
    "load": _EXACT.format(call="load", rest=""),
    "store": "a block is exact and needs no mask; store a value of the elements that exist, as in "
    "tl.store(p + start, x[: min(BLOCK, n - start)])",
}
_CALL = re.compile(r"^(\w+)\(\) (?:got an unexpected keyword argument '(\w+)'|missing |takes )")
_SUBSCRIPTED = "'function' object is not subscriptable"
_MODULES = {
    "triton": "make setup-triton runs its kernels; others have `from kernbench import tl`",
    "triton.language": "write `from kernbench import tl`",
}


def absent_name(name: str, known: Iterable[str]) -> str:
    """The error for a name that `tl` lacks, with the substitute to write."""
    advice = NAMES.get(name)
    return (
        f"kernbench's tl has no {name}{nearest(name, known) if advice is None else f': {advice}'}"
    )


def wrong_call(error: BaseException, frame: FrameType, language: ModuleType) -> str | None:
    """The error in the arguments of a function of `language` that `frame` called, with the
    substitute to write; None if the error is another one.

    Python refuses such a call before the function begins, so the function cannot explain it.
    """
    refusal = _CALL.match(str(error)) if isinstance(error, TypeError) else None
    if refusal is None:
        return None
    name, keyword = refusal.groups()
    function = getattr(language, name, None)
    # A function of the user with the same name.
    own = frame.f_locals.get(name, frame.f_globals.get(name, function))
    if not isfunction(function) or own is not function:
        return None
    if keyword is None:
        return f"tl.{error}; its arguments are {_arguments(function)}"
    masked = _MASKED.get(name.removesuffix("_async")) if keyword == "mask" else None
    advice = masked or _KEYWORDS.get(keyword) or f"its arguments are {_arguments(function)}"
    return f"tl.{name} has no argument {keyword!r}: {advice}"


def program_hint(error: BaseException) -> str | None:
    """The substitute for a launch or an import of Triton that has failed with this error."""
    if isinstance(error, TypeError) and str(error) == _SUBSCRIPTED:
        return f"a kernel is launched with {_LAUNCH}, not with kernel[grid](x, y, n)"
    if isinstance(error, ModuleNotFoundError) and error.name in _MODULES:
        return f"kernbench has no {error.name}: {_MODULES[error.name]}"
    return None


def _arguments(function: object) -> str:
    parameters = signature(function).parameters.values()  # pyright: ignore[reportArgumentType] - a function
    return ", ".join(
        each.name if each.default is Parameter.empty else f"{each.name}={each.default!r}"
        for each in parameters
    )
