"""Loading YAML: the values of the safe loader, and messages that name the line."""

import pytest
import yaml

from runtime.core.config.config_file import default_file, read_text
from runtime.core.config.yaml_mapping import shown, yaml_mapping
from runtime.core.errors import ConfigError


@pytest.mark.parametrize("name", ["topology.yaml", "ccl.yaml"])
def test_the_files_that_ship_are_what_the_safe_loader_reads(name: str) -> None:
    text = read_text(default_file(name))
    assert _lists(yaml_mapping(text, name)) == yaml.safe_load(text)


def test_a_duplicate_key_and_a_key_that_is_no_string_are_errors() -> None:
    with pytest.raises(ConfigError, match="f: line 2: duplicate key 'a'"):
        yaml_mapping("a: 1\na: 2\n", "f")
    with pytest.raises(ConfigError, match="f: line 1: keys are strings, got 1"):
        yaml_mapping("1: a\n", "f")


def test_a_value_is_shown_in_a_line() -> None:
    assert [shown(value) for value in ({}, (1, 2), None, "x")] == [
        "a mapping",
        "a list of 2",
        "null",
        "'x'",
    ]


def _lists(value: object) -> object:
    if isinstance(value, dict):
        return {key: _lists(each) for key, each in value.items()}
    return [_lists(each) for each in value] if isinstance(value, tuple) else value
