"""The module of an algorithm: its kernels by the names of collectives, and what it gives them."""

from collections.abc import Callable, Sequence
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
    """All arguments of a kernel: the operands of its collective, and what `arguments` of its module
    returns for the group.

    `ConfigError` if the two do not fit together. What `arguments` itself raises says why the
    algorithm cannot serve the group.
    """
    config = group.algorithm
    module, key_path = import_module(config.module), f"algorithms.{config.name}.module"
    arguments = getattr(module, "arguments", None)
    if not callable(arguments):
        raise ConfigError(
            source, key_path, f"{config.module!r} has no function arguments(group, itemsize)"
        )
    own = arguments(group, itemsize)
    if not isinstance(own, tuple):
        raise ConfigError(
            source, key_path, f"{config.module}.arguments returned {own!r}; it has to be a tuple"
        )
    given = *operands, *cast("tuple[object, ...]", own)
    try:
        signature(kernel).bind(*given)
    except TypeError as error:
        takes = f"{config.module}.{getattr(kernel, '__name__', kernel)}{signature(kernel)}"
        called = f"is called with {len(operands)} operands and the {len(given) - len(operands)} that arguments() returned"
        raise ConfigError(source, key_path, f"{takes} {called}: {error}") from None
    return given
