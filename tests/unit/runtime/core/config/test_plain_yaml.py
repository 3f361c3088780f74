"""Plain YAML: the values and the texts of PyYAML."""

import pytest
import yaml

from runtime.core.config.config_file import default_file, read_text
from runtime.core.config.plain_yaml import from_yaml, to_yaml


@pytest.mark.parametrize("name", ["topology.yaml", "ccl.yaml"])
def test_the_files_that_ship_are_read_and_written_as_by_pyyaml(name: str) -> None:
    text = read_text(default_file(name))
    content = yaml.safe_load(text)
    assert from_yaml(text) == content
    assert to_yaml(content) == yaml.safe_dump(content)
    assert to_yaml(content, sort_keys=False) == yaml.safe_dump(content, sort_keys=False)


def test_a_value_of_another_type_is_refused() -> None:
    with pytest.raises(yaml.representer.RepresenterError):
        to_yaml(object())
    with pytest.raises(yaml.constructor.ConstructorError):
        from_yaml("!!python/object:builtins.object {}")
