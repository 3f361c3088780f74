"""Names in a configuration file: a key of a registry, or the dotted path of a user's own object."""

from collections.abc import Mapping
from importlib import import_module
from typing import TypeVar, cast

from runtime.core.errors import ConfigError, nearest

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


def look_up_class(
    name: str, registry: Mapping[str, type[_T]], base: type[_T], source: str, key_path: str
) -> type[_T]:
    """What `look_up` finds, if it is a class that derives from `base`; else `ConfigError`."""
    found = cast("object", look_up(name, registry, source, key_path))
    if isinstance(found, type) and issubclass(found, base):
        return found
    raise ConfigError(
        source, key_path, f"{name!r} does not derive from {base.__module__}:{base.__qualname__}"
    )
