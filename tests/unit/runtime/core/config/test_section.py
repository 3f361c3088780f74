"""Sections: immutable, sent between processes as checked values."""

import msgspec
import pytest

from runtime.core.config.section import Section, config_hash


class Bank(Section, frozen=True):
    rows: int
    clock_ghz: float = 1.0


class Memory(Section, frozen=True):
    name: str
    bank: Bank
    sizes: tuple[int, ...] = ()


MEMORY = Memory("hbm", Bank(8), (1, 2))


def test_what_is_decoded_equals_what_was_encoded() -> None:
    assert Memory.decoded(MEMORY.encoded()) == MEMORY


def test_values_are_those_of_a_file() -> None:
    assert MEMORY.values() == {
        "name": "hbm",
        "bank": {"rows": 8, "clock_ghz": 1.0},
        "sizes": (1, 2),
    }


@pytest.mark.parametrize(
    "values",
    [
        {"name": "hbm"},
        {"name": "hbm", "bank": {"rows": "8"}},
        {"name": "hbm", "bank": {"rows": 8}, "size": 3},
    ],
)
def test_a_process_with_another_schema_refuses_the_values(values: dict[str, object]) -> None:
    with pytest.raises(msgspec.ValidationError):
        Memory.decoded(msgspec.msgpack.encode(values))


def test_a_section_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        MEMORY.bank.rows = 9  # type: ignore[misc]


def test_the_hash_is_one_of_values_in_the_order_given() -> None:
    assert config_hash(MEMORY) == config_hash(Memory("hbm", Bank(8, 1.0), (1, 2)))
    assert config_hash(MEMORY) != config_hash(Memory("hbm", Bank(9), (1, 2)))
    assert config_hash(Bank(1), Bank(2)) != config_hash(Bank(2), Bank(1))
