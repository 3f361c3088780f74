"""A Triton kernel with its constants, as a kernel of a launch."""

from collections.abc import Callable, Mapping, Sequence
from inspect import get_annotations, signature
from typing import Any, NamedTuple, cast

import numpy as np

from kernbench.triton import triton_api
from kernbench.triton.builder.program import TritonProgram, current_program
from kernbench.triton.indices.element_types import triton_name
from kernbench.triton.indices.index_values import IndexValue
from kernbench.triton.interpreter import connected
from kernbench.triton.kernel_key import kernel_key
from kernbench.triton.tape.tape import TapeCounts
from runtime.language.caller import LANGUAGE_ERRORS, is_language, location
from runtime.language.context import running_kernel
from runtime.language.value import Pointer

STAGES = 3
"""Iterations whose loads are in flight, unless a launch has `num_stages`: Triton's default."""
OPTIONS = frozenset(
    {
        *("num_warps", "num_stages", "num_ctas", "maxnreg", "enable_fp_fusion", "debug"),
        *("launch_cooperative_grid", "launch_pdl", "warmup", "grid", "noinline", "ir_override"),
    }
)
"""Keywords of a launch that are none of the kernel; all but `num_stages` concern a GPU."""


class TritonKernel:
    """A callable that runs one program on a PE; its arguments are those that are no constants."""

    def __init__(
        self, function: Any, names: Sequence[str], constants: Mapping[str, Any], stages: int
    ) -> None:
        self._function, self._names = function, tuple(names)
        self._constants, self._stages = dict(constants), max(1, stages)
        self.counts = TapeCounts()
        self._list_key = kernel_key(function, self._names, self._constants, self._stages)

    @property
    def __name__(self) -> str:
        return str(self._function.fn.__name__)

    @property
    def list_key(self) -> tuple[object, ...] | None:
        """The key of its commands beside its arguments; None if they may change."""
        return self._list_key

    def host_argument(self, value: Any, passed: Callable[[Any], Any]) -> Any:
        """An argument that is no tensor, with the pointers of those in it by `passed`."""
        if type(value).__name__ == "TensorDescriptor":
            return HostDescriptor(
                passed(value.base),
                tuple(map(int, value.shape)),
                tuple(map(int, value.strides)),
                tuple(map(int, value.block_shape)),
                str(value.padding),
            )
        return value

    def __call__(self, *arguments: object) -> None:
        """Run one program to the end of its commands."""
        connected()
        context = running_kernel()
        program = TritonProgram(context, self._stages, self.counts)
        token = current_program.set(program)
        try:
            given = {
                name: converted_argument(each)
                for name, each in zip(self._names, arguments, strict=True)
            }
            self._function.rewrite()(**given, **self._constants)
            program.finish()
        except (*LANGUAGE_ERRORS, AssertionError, NotImplementedError) as error:
            line = _refused_line(error)
            if line is None:
                raise
            context.locate(line)
            context.fail_assertion(str(error) or type(error).__name__)
        finally:
            current_program.reset(token)
            context.locate("")


def _refused_line(error: BaseException) -> str | None:
    """The innermost line of the user's code above the language, which has raised an error; None if
    that code itself has raised it.
    """
    trace, line, is_own = error.__traceback__, None, True
    while trace is not None:
        is_own = not is_language(trace.tb_frame)
        if is_own:
            line = f"{location(trace.tb_frame).rpartition(':')[0]}:{trace.tb_lineno}"
        trace = trace.tb_next
    return None if is_own else line


class BoundKernel:
    """The parameters of a kernel and their arguments in one launch."""

    def __init__(self, function: Any, given: Sequence[Any], options: Mapping[str, Any]) -> None:
        parameters = signature(function.fn)
        named = {key: each for key, each in options.items() if key in parameters.parameters}
        for key in options:
            if key not in parameters.parameters and key not in OPTIONS:
                raise TypeError(
                    f"kernel {function.fn.__name__!r} has no parameter {key!r}; it has "
                    f"{', '.join(parameters.parameters)}"
                )
        try:
            bound = parameters.bind(*given, **named)
        except TypeError as error:
            raise TypeError(f"kernel {function.fn.__name__!r}: {error}") from None
        bound.apply_defaults()
        self.function, self.arguments = function, dict(bound.arguments)
        self.stages = int(options.get("num_stages") or STAGES)
        constants = constant_names(function.fn)
        self.constants = {
            name: getattr(each, "value", each)
            for name, each in self.arguments.items()
            if name in constants
        }

    def kernel(self) -> tuple[TritonKernel, list[Any]]:
        """The kernel, and its arguments that are no constants."""
        passed = {name: each for name, each in self.arguments.items() if name not in self.constants}
        kernel = TritonKernel(self.function, list(passed), self.constants, self.stages)
        return kernel, list(passed.values())


class HostDescriptor(NamedTuple):
    """A descriptor of a tensor that the host makes."""

    base: Pointer
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    block: tuple[int, ...]
    padding: str

    def made(self) -> Any:
        """The descriptor as the kernel takes it."""
        language = triton_api.module("triton.language")
        semantic = connected().interpreter_semantic
        steps = [*map(converted_argument, self.strides[:-1]), language.constexpr(1)]
        return semantic.make_tensor_descriptor(
            base=converted_argument(self.base),
            shape=[converted_argument(each) for each in self.shape],
            strides=steps,
            block_shape=[language.constexpr(each) for each in self.block],
            padding_option=self.padding,
        )


def constant_names(function: Callable[..., Any]) -> frozenset[str]:
    """The parameters that are annotated as constants."""
    return frozenset(
        name
        for name, hint in get_annotations(function).items()
        if "constexpr" in (hint if isinstance(hint, str) else getattr(hint, "__name__", ""))
    )


def converted_argument(value: Any) -> Any:
    """An argument as the kernel takes it: pointers and numbers are scalars of the language."""
    language = triton_api.module("triton.language")
    if isinstance(value, Pointer):
        element = getattr(language, triton_name(value.dtype))
        return _scalar(language.pointer_type(element), running_kernel().address_of(value))
    if isinstance(value, HostDescriptor):
        return value.made()
    if isinstance(value, tuple):
        return language.tuple(list(map(converted_argument, cast("tuple[Any, ...]", value))))
    if isinstance(value, bool):
        return _scalar(language.int1, value)
    if isinstance(value, int):
        is_narrow = -(2**31) <= value < 2**31
        return _scalar(language.int32 if is_narrow else language.int64, value)
    return _scalar(language.float32, float(np.float32(value))) if type(value) is float else value


def _scalar(dtype: Any, number: Any) -> Any:
    language = triton_api.module("triton.language")
    return language.tensor(IndexValue.constant(dtype, number), dtype)
