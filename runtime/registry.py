"""Names in a configuration file: a key of a registry, or the dotted path of a user's own object."""

from collections.abc import Mapping
from importlib import import_module
from typing import TypeVar

from runtime.errors import ConfigError, nearest

_T = TypeVar("_T")


def look_up(name: str, registry: Mapping[str, _T], source: str, key_path: str) -> _T:
    """The registered object called `name`, or the one at `package.module:attribute` (or `package.module.attribute`).

    `ConfigError` with the nearest registered name, or with the reason why the path does not import.
    """
    if name in registry:
        return registry[name]
    module_name, _, attribute = name.rpartition(":" if ":" in name else ".")
    if not module_name:
        raise ConfigError(source, key_path, f"{name!r} is not known{nearest(name, registry)}")
    try:
        return getattr(import_module(module_name), attribute)
    except (ImportError, AttributeError) as error:
        raise ConfigError(source, key_path, f"{name!r} cannot be imported: {error}") from None
