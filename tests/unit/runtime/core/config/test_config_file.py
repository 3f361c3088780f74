"""Configuration files: validation, one-line errors, hash, overrides."""

from pathlib import Path

import pytest
from msgspec import field

from runtime.core.config.config_file import (
    default_file,
    parse,
    read_text,
    value_at,
    with_values,
)
from runtime.core.config.section import Section, config_hash
from runtime.core.errors import ConfigError


class Engine(Section, frozen=True):
    lanes: int
    clock_ghz: float


class Chip(Section, frozen=True, kw_only=True):
    name: str
    sizes: tuple[int, ...] = ()
    engine: Engine
    engines: dict[str, Engine] = field(default_factory=dict)


GOOD = "name: a\nengine: {lanes: 8, clock_ghz: 1}\n"


def error_of(text: str) -> str:
    with pytest.raises(ConfigError) as raised:
        parse(text, "chip.yaml", Chip)
    message = str(raised.value)
    assert "\n" not in message
    return message


def test_an_integer_is_accepted_where_a_float_is_meant() -> None:
    chip = parse(GOOD, "chip.yaml", Chip)
    assert chip.engine.clock_ghz == 1.0
    assert isinstance(chip.engine.clock_ghz, float)


def test_lists_become_tuples_so_that_a_model_is_immutable_throughout() -> None:
    assert parse(GOOD + "sizes: [1, 2]\n", "chip.yaml", Chip).sizes == (1, 2)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            GOOD.replace("lanes: 8", "lane: 8"),
            "chip.yaml: engine.lane: unknown key; did you mean 'lanes'? (and 1 more)",
        ),
        (GOOD.replace(", clock_ghz: 1", ""), "chip.yaml: engine.clock_ghz: this key is missing"),
        (GOOD.replace("8", "true"), "chip.yaml: engine.lanes: should be a valid integer, got True"),
        (GOOD.replace("8", "8.0"), "chip.yaml: engine.lanes: should be a valid integer, got 8.0"),
        (GOOD.replace("8", "'8'"), "chip.yaml: engine.lanes: should be a valid integer, got '8'"),
        (
            GOOD.replace(": 1}", ": true}"),
            "chip.yaml: engine.clock_ghz: should be a valid number, got True",
        ),
        (
            GOOD.replace(": 1}", ": .inf}"),
            "chip.yaml: engine.clock_ghz: should be a finite number, got inf",
        ),
        (
            GOOD.replace(": 1}", ": .nan}"),
            "chip.yaml: engine.clock_ghz: should be a finite number, got nan",
        ),
        (GOOD.replace(": 1}", f": {10**400}}}"), "chip.yaml: engine.clock_ghz: should be"),
        ("name: a\nengine: 3\n", "chip.yaml: engine: should be a mapping of keys, got 3"),
        (GOOD + "sizes: 3\n", "chip.yaml: sizes: should be a list, got 3"),
        (GOOD + "sizes: [1, x]\n", "chip.yaml: sizes[1]: should be a valid integer, got 'x'"),
        (GOOD + "engines: {a: {lanez: 1}}\n", "unknown key; did you mean 'lanes'?"),
        (
            GOOD.replace("lanes: 8", "lanes: 8, sizes: [1]"),
            "chip.yaml: engine.sizes: unknown key; 'sizes' is a key of the top level",
        ),
        (
            GOOD + "engines: {1: {lanes: 1, clock_ghz: 1}}\n",
            "chip.yaml: line 3: keys are strings, got 1",
        ),
        (GOOD + "7: x\n", "chip.yaml: line 3: keys are strings, got 7"),
        ("name: a\nengine:\n  lanes: 8\n  lanes: 9\n", "chip.yaml: line 4: duplicate key 'lanes'"),
        ("name: a\nengine: {lanes: 8\n", "chip.yaml: line 3: "),
        ("name: *missing\n", "chip.yaml: line 1: found undefined alias 'missing'"),
        ("name: \x01\n", "chip.yaml: not YAML: unacceptable character"),
        ("", "chip.yaml: the file is empty"),
        ("# only a comment\n", "chip.yaml: the file is empty"),
        ("- a\n- b\n", "chip.yaml: the file holds a list of 2, not a mapping of keys"),
        ("chip\n", "chip.yaml: the file holds 'chip', not a mapping of keys"),
        ("a: 1\n---\nb: 2\n", "chip.yaml: line 2: "),
    ],
)
def test_what_is_wrong_with_a_file_is_one_line_that_names_the_key(text: str, message: str) -> None:
    assert message in error_of(text)


@pytest.mark.parametrize("value", [1 << 63, -(1 << 63) - 1, 1 << 70])
def test_an_integer_beyond_64_bits_is_one_line_that_names_the_key(value: int) -> None:
    text = f"name: a\nengine: {{lanes: {value}, clock_ghz: 1}}\n"
    assert error_of(text) == (
        f"chip.yaml: engine.lanes: should be an integer of at most 64 bits, got {value}"
    )


def test_a_number_beyond_64_bits_is_a_float_where_one_is_meant() -> None:
    text = f"name: a\nengine: {{lanes: {(1 << 63) - 1}, clock_ghz: {1 << 70}}}\n"
    chip = parse(text, "chip.yaml", Chip)
    assert Chip.decoded(chip.encoded()) == chip


def test_anchors_and_merge_keys_work() -> None:
    text = (
        "name: a\nengine: &base {lanes: 8, clock_ghz: 1}\n"
        "engines: {fast: {<<: *base, clock_ghz: 2}}\n"
    )
    engines = parse(text, "chip.yaml", Chip).engines
    assert engines == {"fast": Engine(lanes=8, clock_ghz=2.0)}


def test_only_the_first_error_is_shown_with_the_number_of_the_others() -> None:
    assert error_of("{}").endswith("name: this key is missing (and 1 more)")


def test_a_missing_file_and_a_directory_are_configuration_errors(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such file"):
        read_text(tmp_path / "nothing.yaml")
    with pytest.raises(ConfigError, match="cannot be read"):
        read_text(tmp_path)


def test_a_file_that_is_not_text_names_the_byte(tmp_path: Path) -> None:
    (tmp_path / "binary.yaml").write_bytes(b"abc\xff")
    with pytest.raises(ConfigError, match="byte 3 is not UTF-8 text"):
        read_text(tmp_path / "binary.yaml")


def test_the_hash_depends_on_values_alone() -> None:
    reordered = "# a comment\nengine: {clock_ghz: 1.0, lanes: 8}\nname: a\n"
    assert config_hash(parse(GOOD, "a", Chip)) == config_hash(parse(reordered, "b", Chip))
    assert config_hash(parse(GOOD, "a", Chip)) != config_hash(
        parse(GOOD.replace("8", "9"), "a", Chip)
    )


def test_overrides_by_key_path_copy_the_content_and_create_missing_sections() -> None:
    content = {"ucie": {"bw_gbs": 128}}
    changed = with_values(content, {"ucie.bw_gbs": 64, "impl.router": "fast"})
    assert changed == {"ucie": {"bw_gbs": 64}, "impl": {"router": "fast"}}
    assert value_at(changed, "impl.router") == "fast"
    assert content == {"ucie": {"bw_gbs": 128}}
    with pytest.raises(KeyError):
        value_at(content, "ucie.overhead_ns")


def test_the_default_files_exist() -> None:
    assert default_file("topology.yaml").is_file()
    assert default_file("ccl.yaml").is_file()
