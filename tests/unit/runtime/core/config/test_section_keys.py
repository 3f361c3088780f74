"""The keys with single values of both configuration files."""

import msgspec
import pytest

from runtime.ccl.config import CclFile
from runtime.core.config.config_file import default_file, from_values, parse, read_text, with_values
from runtime.core.config.section import Section
from runtime.core.config.section_keys import value_keys
from runtime.core.errors import ConfigError
from runtime.model.topology import Topology


class Inner(Section, frozen=True):
    size: int
    point: tuple[float, float] = (0.0, 0.0)


class Outer(Section, frozen=True):
    name: str
    inner: Inner
    optional: Inner | None = None
    count: int | None = None
    tables: dict[str, Inner] = msgspec.field(default_factory=dict[str, Inner])


def test_sections_are_walked_and_lists_left_out():
    content = {"name": "x", "inner": {"size": 1}, "tables": {"first": {"size": 2}}}
    assert list(value_keys(content, Outer)) == [
        "name",
        "inner.size",
        "optional.size",
        "count",
        "tables.first.size",
    ]


@pytest.mark.parametrize(("name", "schema"), [("topology.yaml", Topology), ("ccl.yaml", CclFile)])
def test_every_key_of_a_shipped_file_takes_a_value_and_no_mapping(name: str, schema: type[Section]):
    content = parse(read_text(default_file(name)), name, schema).values()
    keys = list(value_keys(content, schema))
    assert len(keys) == len(set(keys)) > 100
    for key in keys:
        with pytest.raises(ConfigError, match="got a mapping"):
            from_values(with_values(content, {key: {}}), name, schema)
