"""Machines of which any key of `topology.yaml` is drawn, from the ranges that the schema states."""

from random import Random
from typing import Any

import yaml

from runtime.core.config.config_file import from_values, value_at, with_values
from runtime.model.keys import hardware_keys
from runtime.model.rules import problems
from runtime.model.schema.draws import Among, Draw, Nearby, Scaled
from runtime.model.schema.topology_schema import Topology
from tests.support.topologies import SOURCE, default_text

ATTEMPTS = 1000


DRAWS: dict[str, Draw | None] = {key.path: key.draw for key in hardware_keys()}


def default_content() -> dict[str, Any]:
    """The default file, with all keys that it leaves out."""
    content: dict[str, Any] = yaml.load(default_text(), yaml.CSafeLoader)
    return from_values(_with_tuples(content), SOURCE, Topology).values()


def drawn(path: str, random: Random, default: Any, size_mm: tuple[float, float]) -> Any:
    """A value of the range of a key; positions lie in a cube of `size_mm`."""
    match DRAWS[path]:
        case Among(values):
            return random.choice(values)
        case Scaled(zero_to):
            least, most = (default / 2, default * 2) if default else (0.0, zero_to)
            if isinstance(default, int):
                return random.randint(max(1, int(least)), int(most))
            return round(random.uniform(least, most), 2)
        case Nearby(mm):
            return _moved(default, random, mm, size_mm)
        case _:
            return default


def other(path: str, default: Any, attempt: int = 0) -> Any:
    """Another value of the range of a key, by `attempt`; `default` itself for a fixed key."""
    random = Random(f"{path} {attempt}")
    values = (drawn(path, random, default, (12.0, 12.0)) for _ in range(ATTEMPTS))
    return next((each for each in values if _listed(each) != _listed(default)), default)


def random_content(random: Random) -> dict[str, Any]:
    """A machine all of whose keys are drawn, and which no rule refuses.

    The keys beside one that a rule names are drawn again.
    """
    default = default_content()
    content = _redrawn(default, default, list(DRAWS), random)
    for _ in range(ATTEMPTS):
        refused = [path for path, _ in problems(_checked(content))]
        if not refused:
            return content
        # The sizes of TCM and of its parts belong together; `tile` and `tile_buffers` as well.
        names = {path.rpartition(".")[0] + "." for path in refused}
        names |= {"pe.tcm", "pe.scheduler", "pe.tile."} if "pe." in names else set()
        names |= {"cube."} if any(name.startswith("cube.") for name in names) else set()
        again = [path for path in DRAWS if path.startswith(tuple(names)) or path in refused]
        content = _redrawn(content, default, again, random)
    raise AssertionError(f"no machine after {ATTEMPTS} attempts: {refused}")


def as_text(content: dict[str, Any]) -> str:
    """The file with these keys."""
    return yaml.dump(_lists(content), Dumper=yaml.CSafeDumper)


def refusals(content: dict[str, Any]) -> list[tuple[str, str]]:
    """The rules that a machine violates."""
    return list(problems(_checked(content)))


def _redrawn(
    content: dict[str, Any], default: dict[str, Any], paths: list[str], random: Random
) -> dict[str, Any]:
    sizes = {
        path: drawn(path, random, value_at(default, path), (0, 0))
        for path in ("cube.size_mm.w", "cube.size_mm.h")
        if path in paths
    }
    content = with_values(content, sizes)
    size = content["cube"]["size_mm"]
    values = {
        path: drawn(path, random, value_at(default, path), (size["w"], size["h"]))
        for path in paths
        if path not in sizes
    }
    return with_values(content, values)


def _checked(content: dict[str, Any]) -> Topology:
    return from_values(_with_tuples(content), SOURCE, Topology)


def _moved(value: Any, random: Random, mm: float, size_mm: tuple[float, ...]) -> Any:
    if value and isinstance(value[0], list | tuple):
        return [_moved(each, random, mm, size_mm) for each in value]
    moved = (each + random.uniform(-mm, mm) for each in value)
    # Pairs of x and y.
    sides = size_mm * (len(value) // 2)
    return [round(min(max(0.0, each), side), 2) for each, side in zip(moved, sides, strict=True)]


def _listed(value: Any) -> Any:
    return [_listed(each) for each in value] if isinstance(value, list | tuple) else value


def _lists(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _lists(each) for key, each in value.items()}
    return _listed(value)


def _with_tuples(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _with_tuples(each) for key, each in value.items()}
    return tuple(map(_with_tuples, value)) if isinstance(value, list | tuple) else value
