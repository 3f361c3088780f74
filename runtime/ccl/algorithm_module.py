"""The module of an algorithm: its kernels, found by the names of collectives, and the arguments
that it adds to a call.
"""

from collections.abc import Callable, Hashable, Sequence
from functools import cache
from importlib import import_module
from inspect import signature
from types import ModuleType
from typing import cast

from runtime.ccl.config import CclConfig
from runtime.ccl.group import Group
from runtime.core.errors import ConfigError

Kernel = Callable[..., object]


def module_of(algorithm: str, ccl: CclConfig) -> ModuleType:
    """The module that `ccl` names for an algorithm; `ConfigError` if it cannot be imported."""
    name = ccl.resolve(algorithm).module
    try:
        return import_module(name)
    except ImportError as error:
        # The module was found when the file was read; an import in it has failed.
        raise ConfigError(
            ccl.source, f"algorithms.{algorithm}.module", f"{name!r} cannot be imported: {error}"
        ) from None


def kernel_of(algorithm: str, collective: str, ccl: CclConfig) -> Kernel | None:
    """The kernel of a collective, if the algorithm has one."""
    kernel = getattr(module_of(algorithm, ccl), collective, None)
    return kernel if callable(kernel) else None


def algorithms_with(collective: str, ccl: CclConfig) -> list[str]:
    """The algorithms that have a kernel of the collective."""
    return [name for name in ccl.file.algorithms if kernel_of(name, collective, ccl) is not None]


def complete(
    kernel: Kernel, operands: Sequence[object], group: Group, itemsize: int, source: str
) -> tuple[object, ...]:
    """All arguments of a kernel: the operands of its collective, then the result of `arguments` of
    its module for the group.

    `ConfigError` if the kernel does not accept them. An exception of `arguments` itself passes
    through: it is the reason why the algorithm does not support the group.
    """
    config = group.algorithm
    module, key_path = import_module(config.module), f"algorithms.{config.name}.module"
    arguments = getattr(module, "arguments", None)
    if not callable(arguments):
        problem = f"{config.module!r} has no function arguments(group, itemsize)"
        raise ConfigError(source, key_path, problem)
    extra = arguments(group, itemsize)
    if not isinstance(extra, tuple):
        problem = f"{config.module}.arguments returned {extra!r}; it has to be a tuple"
        raise ConfigError(source, key_path, problem)
    passed = *operands, *cast("tuple[object, ...]", extra)
    # All calls of a collective have one number of arguments, and a signature takes long to read.
    # A user's kernel may be an object without a hash.
    known = cast("object", kernel)
    refusal = _refusal if isinstance(known, Hashable) else _refusal.__wrapped__
    refused = refusal(kernel, len(passed))
    if refused:
        takes = f"{config.module}.{getattr(kernel, '__name__', kernel)}{signature(kernel)}"
        counts = f"{len(operands)} operands and the {len(passed) - len(operands)}"
        problem = f"{takes} is called with {counts} that arguments() returned: {refused}"
        raise ConfigError(source, key_path, problem)
    return passed


@cache
def _refusal(kernel: Kernel, count: int) -> str:
    """The reason why a kernel does not accept `count` arguments; empty if it does."""
    try:
        signature(kernel).bind(*[None] * count)
    except TypeError as error:
        return str(error)
    return ""
