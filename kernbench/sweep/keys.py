"""Keys of both configuration files as a user writes them: in full, or by a unique end.

`ucie.bw_gbs` is a key of `topology.yaml` in full. `dma.channels` is the end of `pe.dma.channels`
alone; `bw_gbs` is that of several keys, and is refused.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from runtime.ccl.config import CclFile
from runtime.core.config.config_file import parse, raise_first, value_at
from runtime.core.config.section import Section
from runtime.core.config.section_keys import value_keys
from runtime.core.config.section_problems import value_problems
from runtime.core.errors import UsageError, nearest
from runtime.model.schema.topology_schema import PartValue
from runtime.model.topology import Topology

OVERRIDE = "overrides["
"""The begin of a key of a part of the machine: `overrides[sip0.cube6.ucie.W].bw_gbs`."""
_SHOWN = 4
"""Keys in the error about an end that several keys have."""


class ConfigFile(StrEnum):
    """The configuration files whose keys can be swept."""

    TOPOLOGY = "topology"
    CCL = "ccl"


@dataclass(frozen=True)
class ConfigTexts:
    """Both configuration files: their names, and their texts."""

    topology_file: str
    topology_text: str
    ccl_file: str
    ccl_text: str

    def content(self, file: ConfigFile) -> dict[str, Any]:
        """The values of a file, each valid by itself; raises `ConfigError`."""
        return self._section(file).values()

    def keys(self, file: ConfigFile) -> dict[str, Any]:
        """The keys of a file with single values, and their annotations."""
        return value_keys(self.content(file), type(self._section(file)))

    def require_valid(self, file: ConfigFile, key: str, values: Mapping[str, Any]) -> None:
        """Raise `ConfigError` for a value that a key cannot have; `values` are by their origin."""
        # An override may be of a part which the file does not have.
        annotation, schema = self.keys(file).get(key, PartValue), type(self._section(file))
        for source, value in values.items():
            raise_first(source, value_problems(value, annotation, key, schema))

    def _section(self, file: ConfigFile) -> Section:
        # The rules that relate several keys hold for the values of each point, not for these.
        if file is ConfigFile.TOPOLOGY:
            return parse(self.topology_text, self.topology_file, Topology)
        return parse(self.ccl_text, self.ccl_file, CclFile)


def find_key(texts: ConfigTexts, given: str) -> tuple[ConfigFile, str]:
    """The file and the full path of the key that is `given` in full or by its end.

    Raises `UsageError` for an end of several keys, with these, and for none, with the nearest.
    """
    if given.startswith(OVERRIDE):
        return ConfigFile.TOPOLOGY, given
    known = [(file, key) for file in ConfigFile for key in texts.keys(file)]
    for each in known:
        if each[1] == given:
            return each
    _refuse_group(texts, given)
    matches = [each for each in known if each[1].endswith(f".{given}")]
    if len(matches) == 1:
        return matches[0]
    if matches:
        rest = len(matches) - _SHOWN
        keys = ", ".join(key for _, key in matches[:_SHOWN])
        more = f" and {rest} more" if rest > 0 else ""
        raise UsageError(f"--set {given}: the end of {len(matches)} keys: {keys}{more}")
    hint = similar_key(given, [key for _, key in known])
    raise UsageError(f"--set {given}: no key of topology.yaml or ccl.yaml{hint}")


def _refuse_group(texts: ConfigTexts, given: str) -> None:
    """Raise `UsageError` for the path of a section or of a list."""
    for file in ConfigFile:
        content: Mapping[str, Any] = texts.content(file)
        try:
            value = value_at(content, given)
        except (KeyError, TypeError):
            continue
        if isinstance(value, dict):
            first = next(key for key in texts.keys(file) if key.startswith(f"{given}."))
            raise UsageError(f"--set {given}: a section, not a key; its first key is {first}")
        raise UsageError(f"--set {given}: its value is a list; a sweep varies keys with one value")


def similar_key(given: str, known: Sequence[str]) -> str:
    """The key that `given` resembles as a whole or by its end, or the sections that exist."""
    parts = given.count(".") + 1
    ends = {".".join(key.split(".")[-parts:]) for key in known}
    for names in (known, ends):
        hint = nearest(given, names)
        if "did you mean" in hint:
            return hint
    return nearest(given, known)
