"""Predicts the time of a run with one number of its topology file changed, from its path.

The work of each piece of the path takes another time on the changed machine; the sum of these
differences is the prediction. It is an estimate, and no bound: another chain may become the longest
one, and pieces may compete for other servers than before. A simulation of the changed run is exact.

Records have the length of a wait at a link, and not whose packets were in front. If these come
earlier as well, a shorter latency shortens the piece; if they come when they did, the wait absorbs
it. `predicted_ps` takes the first for all waits of the path, `absorbed_ps` the second.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from kernbench.explain.records import RecordedRun
from kernbench.explain.why.machine_times import MachineTimes
from kernbench.explain.why.path import CriticalPath
from kernbench.explain.why.work import PathWork
from runtime.core.config.config_file import path_names, value_at, with_values
from runtime.core.errors import ConfigError, UsageError, nearest
from runtime.core.simtime import exact
from runtime.model.keys import keys_of_group
from runtime.model.parts.overrides import value_of_part
from runtime.model.parts.part_keys import UnknownPartKeyError
from runtime.model.schema.meanings import KeyGroup
from runtime.model.topology import Topology, parse_topology

FACTORS = {"ns": "x0.5", "GB/s": "x2", "GHz": "x2"}
"""The factor of a component that is twice as fast, by the unit of the key."""
_FACTOR, _SIPS = "x", "system.sips.count"


@dataclass(frozen=True)
class NumberChange:
    """A number of the topology file with another value."""

    key: str
    before: float
    after: float

    def __str__(self) -> str:
        return f"{self.key}={self.after:g}"


@dataclass(frozen=True)
class Prediction:
    """The predicted change of the time of a run, negative for less; `simulated_ps` if checked.

    `absorbed_ps` is the prediction if waits on the path absorb changes of latencies beside them.
    """

    change: NumberChange
    predicted_ps: int
    absorbed_ps: int
    simulated_ps: int | None = None


def parse_change(records: RecordedRun, text: str) -> NumberChange:
    """The change `KEY=VALUE` or `KEY=xFACTOR`. Raises `UsageError` naming the key and its value."""
    key, equals, value = text.partition("=")
    content = records.topology.values()
    if not (key and equals):
        raise UsageError(f"why: --what-if {text}: expected KEY=NUMBER or KEY=xFACTOR")
    if key == _SIPS:
        raise UsageError(
            f"why: --what-if {key}: {records.name} has {records.run.sips} SIPs, and "
            "with another number it is another run: kernbench --sips"
        )
    try:
        before = _present(records.topology, key)
    except UnknownPartKeyError as error:
        raise UsageError(f"why: --what-if {key}: {error}") from error
    except (KeyError, TypeError) as error:
        suggestion = nearest(key, list(number_keys(content)))
        raise UsageError(
            f"why: --what-if {key}: no key of {records.name}/topology.yaml{suggestion}"
        ) from error
    if isinstance(before, dict):
        numbers = list(number_keys(before, f"{key}."))
        shown = f"; its first number is {numbers[0]}" if numbers else ""
        raise UsageError(f"why: --what-if {key}: a section, not a number{shown}")
    if isinstance(before, bool) or not isinstance(before, int | float):
        raise UsageError(f"why: --what-if {key}: its value is {before!r}, not a number")
    return NumberChange(key, before, _value(text, value, before))


def _present(topology: Topology, key: str) -> Any:
    """The value of a key; that of a part of the machine, whether or not the file has it."""
    if not key.startswith("overrides["):
        return value_at(topology.values(), key)
    _, name, of_part = path_names(f"{key}.") if key.endswith("]") else path_names(key)
    return value_of_part(topology, name, of_part)


def _value(text: str, value: str, before: float) -> float:
    try:
        number = exact(float(value.removeprefix(_FACTOR)))
    except ValueError as error:
        raise UsageError(
            f"why: --what-if {text}: expected a number, or a factor as in x2, got {value!r}"
        ) from error
    changed = number * exact(before) if value.startswith(_FACTOR) else number
    # A count stays an integer: the file has a type for each key.
    whole = isinstance(before, int) and changed.denominator == 1
    return int(changed) if whole else float(changed)


def number_keys(content: Any, prefix: str = "") -> Iterator[str]:
    """The key paths of all numbers."""
    for key, value in content.items():
        if isinstance(value, dict):
            yield from number_keys(value, f"{prefix}{key}.")
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield f"{prefix}{key}"


def changed_topology(records: RecordedRun, change: NumberChange) -> Topology:
    """The machine with the changed number. Raises `UsageError` for a value that it refuses."""
    try:
        return parse_topology(
            changed_text(records, change), f"--what-if {change}", records.run.sips
        )
    except ConfigError as error:
        raise UsageError(f"why: {error}") from error


def changed_text(records: RecordedRun, change: NumberChange) -> str:
    """The topology file with the changed number."""
    from runtime.core.config.plain_yaml import to_yaml

    content = with_values(records.topology.values(), {change.key: change.after})
    return to_yaml(content, sort_keys=False)


class Predictor:
    """Predicts the time of a run from its critical path."""

    def __init__(self, records: RecordedRun, path: CriticalPath) -> None:
        self._records = records
        work = PathWork(records)
        works = ((work.of(piece), piece.length_ps) for piece in path.pieces)
        # A path repeats its work: equal pieces change by the same.
        self._pieces = Counter((each, length_ps) for each, length_ps in works if each is not None)
        self._times = MachineTimes(records.topology)

    def predict(self, change: NumberChange) -> Prediction:
        """The change of the time of the run."""
        return Prediction(change, *self.changes_ps(changed_topology(self._records, change)))

    def changes_ps(self, topology: Topology) -> tuple[int, int]:
        """The change of the time on another machine, and the same if waits absorb latencies."""
        before, after = self._times, MachineTimes(topology)
        predicted_ps, absorbed_ps = (
            sum(
                count
                * before.of(work).change_ps(after.of(work), length_ps, is_absorbed=is_absorbed)
                for (work, length_ps), count in self._pieces.items()
            )
            for is_absorbed in (False, True)
        )
        return predicted_ps, absorbed_ps

    def classes(self, most: int = 5) -> Sequence[Prediction]:
        """The classes of components that save most if they were twice as fast."""
        predictions = list[Prediction]()
        for key in keys_of_group(KeyGroup.WHAT_IF):
            change = parse_change(self._records, f"{key.path}={FACTORS[key.unit]}")
            if Fraction(change.before) != Fraction(change.after):
                predictions.append(self.predict(change))
        predictions = [each for each in predictions if each.predicted_ps < 0]
        return sorted(predictions, key=lambda each: (each.predicted_ps, each.change.key))[:most]
