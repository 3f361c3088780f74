"""Meanings of the keys of `topology.yaml`, and the groups of keys that commands treat alike.

Both stand in the annotation of a key, beside the bounds of its values and its range for random
machines (`runtime.model.schema.draws`). Of several meanings the last one counts.
"""

from dataclasses import dataclass
from enum import Enum


@dataclass(frozen=True)
class ActsOn:
    """The part of the machine on which a key acts, as the comment of the key in `topology.yaml`.

    A meaning of a section is that of its keys which have none. `unit` is for keys whose name has
    none; `since` is the version of the schema that added the key.
    """

    text: str
    unit: str = ""
    since: int = 1


class KeyGroup(Enum):
    """Keys that a command treats alike; the value describes what it does with them."""

    DELAY = "validate draws this delay of a component"
    BANDWIDTH = "validate draws this bandwidth"
    WHAT_IF = "why predicts a run with it twice as fast"


WHAT_IF = KeyGroup.WHAT_IF
