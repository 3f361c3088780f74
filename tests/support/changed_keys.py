"""Reports of runs on machines with changed keys, for the comparison of two cores.

The core is chosen when a process starts: `python -m tests.support.changed_keys MACHINES` prints a
line of JSON for each run with the core of its environment. First come the scenarios themselves and
each with one key changed, then the program on MACHINES machines all of whose keys are drawn.
`--only KEY` leaves out the other keys.
"""

import json
import sys
from collections.abc import Iterator
from random import Random
from typing import Any, NamedTuple
from zlib import crc32

from runtime.core.config.config_file import default_file, read_text, value_at, with_values
from runtime.model.schema.draws import Fixed
from tests.support.key_programs import SMALL, Scenario, everything, scenario_of
from tests.support.random_topologies import (
    DRAWS,
    as_text,
    default_content,
    other,
    random_content,
    refusals,
)
from tests.support.world import simulate

COMPANIONS: dict[str, dict[str, Any]] = {
    "system.sips.w": {"system.sips.w": 1, "system.sips.h": 4},
    "system.sips.h": {"system.sips.w": 4, "system.sips.h": 1},
}
"""Keys that the rules let change together only."""
CCL = read_text(default_file("ccl.yaml")).replace("buffer_kind: tcm", "buffer_kind: sram")
"""Rings in SRAM, so that collectives use it."""


class Run(NamedTuple):
    """A program on a machine; `key` is what has been changed, if it is one key."""

    name: str
    key: str
    scenario: Scenario
    content: dict[str, Any]


def content_of(scenario: Scenario, key: str = "") -> dict[str, Any]:
    """The machine of a scenario, with another value of a key."""
    content = with_values(default_content(), SMALL | scenario.values)
    if not key:
        return content
    present = value_at(content, key)
    for attempt in range(40):
        values = COMPANIONS.get(key) or {key: other(key, present, attempt)}
        changed = with_values(content, values)
        if not refusals(changed):
            return changed
    raise AssertionError(f"{key}: no value of its range fits to the other keys")


def single_runs(keys: list[str]) -> Iterator[Run]:
    """The scenarios of `keys`, and each with one key changed."""
    for scenario in {scenario_of(key).name: scenario_of(key) for key in keys}.values():
        yield Run(scenario.name, "", scenario, content_of(scenario))
    for key in keys:
        scenario = scenario_of(key)
        yield Run(scenario.name, key, scenario, content_of(scenario, key))


def random_runs(machines: int) -> Iterator[Run]:
    """The program on machines all of whose keys are drawn."""
    for seed in range(machines):
        random = Random(seed)
        yield Run(f"machine {seed}", "", Scenario("machine", everything), random_content(random))


def report(run: Run) -> dict[str, str]:
    """All that a run reports: digests, times, counters, events, and checksums of its records."""
    content = run.content
    sips = content["system"]["sips"]["count"]
    try:
        world = simulate(
            run.scenario.program, sips, topology=as_text(content), ccl=CCL, record=True
        )
    except Exception as error:  # noqa: BLE001 - both cores fail alike, or the test names the key
        return {"name": run.name, "key": run.key, "error": repr(error)[:300], "result": ""}
    recorded = sorted((sip, table, crc32(rows)) for (sip, table), rows in world.rows.items())
    result = repr((world.time_ps, world.done.events, world.done.sips, recorded))
    return {
        "name": run.name,
        "key": run.key,
        "error": "",
        "time": str(world.time_ps),
        "result": f"{world.time_ps} ps, {crc32(result.encode()):08x}",
    }


def drawn_keys() -> list[str]:
    """The keys that are not fixed."""
    return [key for key, draw in DRAWS.items() if not isinstance(draw, Fixed)]


def main(arguments: list[str]) -> None:
    machines, options = int(arguments[0]), arguments[1:]
    keys = drawn_keys()
    if "--only" in options:
        keys = [options[options.index("--only") + 1]]
    for runs in (single_runs(keys), random_runs(machines)):
        for run in runs:
            print(json.dumps(report(run)), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
