"""Resolves a name in a configuration file to an object: a registry key, or an import path.

All exchangeable parts use it: components (`impl:`), and mappers, validators and algorithm modules
of `ccl.yaml`.
"""

from collections.abc import Mapping
from importlib import import_module
from typing import TypeVar, cast

from runtime.core.errors import ConfigError, nearest

_T = TypeVar("_T")


def look_up(name: str, registry: Mapping[str, _T], source: str, key_path: str) -> _T:
    """The registered object `name`, or the object at the import path `package.module:attribute`.

    `package.module.attribute` works as well. `ConfigError` with the nearest registered name, or
    with the reason why the path cannot be imported.
    """
    if name in registry:
        return registry[name]
    # A colon separates module and attribute; without one, the last dot does.
    module_name, _, attribute = name.rpartition(":" if ":" in name else ".")
    if not module_name:
        raise ConfigError(source, key_path, f"{name!r} is not known{nearest(name, registry)}")
    try:
        return getattr(import_module(module_name), attribute)
    # Other exceptions of the user's module are not caught: their traceback is the best message.
    except (ImportError, AttributeError) as error:
        raise ConfigError(source, key_path, f"{name!r} cannot be imported: {error}") from None


def look_up_class(
    name: str, registry: Mapping[str, type[_T]], base: type[_T], source: str, key_path: str
) -> type[_T]:
    """The class that `look_up` finds; `ConfigError` unless it derives from `base`."""
    # The type of an imported object is unknown until it is checked below.
    registered = cast("object", look_up(name, registry, source, key_path))
    if isinstance(registered, type) and issubclass(registered, base):
        return registered
    raise ConfigError(
        source, key_path, f"{name!r} does not derive from {base.__module__}:{base.__qualname__}"
    )
