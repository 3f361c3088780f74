"""Connects Triton's interpreter to the PE, once a process.

Triton rewrites a function under `@triton.jit` to plain Python, whose calls of the language go to a
builder. Its functions are replaced for good, and not for each launch as Triton does: kernels of
many PEs interleave.
"""

import atexit
import gc
from collections.abc import Callable
from functools import cache, partial
from inspect import currentframe, getmembers
from types import FunctionType
from typing import Any, cast

from kernbench.triton import triton_api
from runtime.language.context import running_kernel
from runtime.language.running import current_pe

_NOT_INTERPRETED = (
    "triton was imported before the run began, for a GPU: set {name}=1 in the environment, or "
    "import it in the program of the rank"
)


@cache
def connected() -> Any:
    """Triton's interpreter, whose builder is that of this package."""
    triton = triton_api.module("triton")
    if not triton.knobs.runtime.interpret:
        raise RuntimeError(_NOT_INTERPRETED.format(name=triton_api.INTERPRET))
    interpreter = triton_api.module("triton.runtime.interpreter")
    _InterpreterConnection(triton.language, interpreter).replace()
    # A process of a run ends with its objects frozen, and nanobind, of which Triton is made, would
    # report all of Triton as leaked.
    atexit.register(gc.unfreeze)
    return interpreter


class _InterpreterConnection:
    def __init__(self, language: Any, interpreter: Any) -> None:
        self._language, self._interpreter = language, interpreter

    def replace(self) -> None:
        """Replace the builder, and what reads handles of numpy."""
        from kernbench.triton.builder.builder import Builder
        from kernbench.triton.builder.builder_atomics import extreme

        semantic, builder = self._interpreter.interpreter_semantic, Builder()
        self._interpreter.interpreter_builder = builder
        semantic.builder = builder
        language = self._language
        for owner in (
            language,
            language.core,
            language.math,
            language.tensor,
            language.core.tensor_descriptor_base,
        ):
            self._bind(owner, semantic)
        for name in ("max", "min"):
            setattr(semantic, f"atomic_{name}", extreme(semantic, name))
        self._replace_tensors()
        self._replace_language()
        self._interpreter.InterpretedFunction.__call__ = _called
        _replace_library()

    def _bind(self, owner: Any, semantic: Any) -> None:
        """Functions of the language take the semantic layer of the interpreter."""
        for name, member in getmembers(owner):
            if self._language.core.is_builtin(member):
                setattr(owner, name, _bound(member, semantic))

    def _replace_tensors(self) -> None:
        from kernbench.triton.builder.builder import truth, whole_number
        from kernbench.triton.builder.builder_shapes import with_order

        language, tensor = self._language, self._language.tensor

        def transposed(value: Any) -> Any:
            axes = len(value.shape)
            order = (*range(axes - 2), axes - 1, axes - 2)
            handle = with_order(value.handle, order)
            return tensor(handle, language.block_type(value.dtype, list(handle.shape)))

        def index(value: Any) -> Any:
            return whole_number(value.handle)

        def is_true(value: Any) -> bool:
            frame = currentframe()
            return truth(value.handle, None if frame is None else frame.f_back)

        def shown(value: Any) -> str:
            return f"tensor of {value.type}"

        tensor.__index__, tensor.__bool__ = index, is_true
        tensor.__repr__ = tensor.__str__ = shown
        tensor.T = property(transposed)

    def _replace_language(self) -> None:
        from kernbench.triton.builder import block_pointers, combining

        language = self._language
        load = block_pointers.load_function(language.load)
        store = block_pointers.store_function(language.store)
        for owner in (language, language.core):
            owner.range = owner.static_range = _range
            owner.load, owner.store = load, store
            owner.make_block_ptr = block_pointers.make_block_ptr
            owner.advance = block_pointers.advance
            owner.static_assert = _static_assert
            owner.static_print = _static_print
            owner.reduce = combining.reduce
            owner.associative_scan = combining.associative_scan
            for name in ("multiple_of", "max_contiguous", "max_constancy"):
                setattr(owner, name, _unchanged)
        language.condition.__bool__ = _condition
        language.sort = language.standard.sort = combining.sort
        language.flip = language.standard.flip = language.tensor.flip = combining.flip
        language.core.dtype.to_ir = _ir_type
        tensor = language.tensor
        tensor.reduce, tensor.sort = combining.reduce, combining.sort
        tensor.associative_scan = combining.associative_scan


def _bound(member: Callable[..., Any], semantic: Any) -> Callable[..., Any]:
    def call(*given: Any, **options: Any) -> Any:
        options["_semantic"] = semantic
        return member(*given, **options)

    call.__name__ = getattr(member, "__name__", "call")
    call.__doc__ = member.__doc__
    return call


def _condition(value: Any) -> bool:
    return bool(value.condition)


def _ir_type(dtype: Any, _: object) -> Any:
    if dtype.name.startswith(("int", "uint", "fp", "bf", "void")):
        return dtype
    raise ValueError(f"the PE has no elements of type {dtype.name}")


def _range(first: Any, second: Any = None, step: Any = None, **_: object) -> range:
    """`tl.range` and `tl.static_range`; hints to a compiler change nothing."""
    start, stop = (0, first) if second is None else (first, second)
    return range(int(start), int(stop), 1 if step is None else int(step))


def _static_assert(condition: object, message: str = "") -> None:
    if not condition:
        raise ValueError(f"static_assert: {message}" if message else "static_assert")


def _static_print(*values: object, **options: Any) -> None:
    running_kernel().run_again("static_print")
    print(*values, **options)


def _unchanged(value: Any, *_: object, **__: object) -> Any:
    return value


def _called(function: Any, *given: Any, **options: Any) -> Any:
    """A call of a function under `@triton.jit` by another one."""
    if current_pe.get(None) is None:
        raise RuntimeError(
            f"{function.fn.__name__} is a kernel: launch it with {function.fn.__name__}[grid](...) "
            "or torch.launch(name, kernel, ..., grid=grid)"
        )
    return function.rewrite()(*given, **options)


def _replace_library() -> None:
    """Give functions of a GPU's library the code that calls the vector engine, or the error of one
    that it lacks.

    In place: kernels import them by name, before they are launched.
    """
    from kernbench.triton.builder.library import FUNCTIONS, absent

    library = triton_api.module("triton.language.extra.libdevice")
    members = cast("dict[str, object]", vars(library))
    stubs = dict[str, FunctionType]()
    functions = dict[str, Callable[..., Any]]()
    for name, each in members.items():
        if isinstance(each, FunctionType):
            stubs[name], functions[name] = each, partial(absent, name)
    functions |= FUNCTIONS
    library.kernbench_functions = functions
    for name, function in functions.items():
        if name not in stubs:
            setattr(library, name, function)
            continue
        made = dict[str, FunctionType]()
        called = f"def {name}(*given): return kernbench_functions[{name!r}](*given)"
        exec(called, made)  # noqa: S102 - a name of the library
        stubs[name].__code__ = made[name].__code__
