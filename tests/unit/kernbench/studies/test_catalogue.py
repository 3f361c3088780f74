"""Each study is declared once, with a help text for each flag; its class is imported to run it.

Lists of values in flags are refused with the flag, the text and the range.
"""

import re

import pytest

from kernbench.studies.catalogue import (
    STUDIES,
    KvFlags,
    distinct_values,
    rising_numbers,
    study_class,
)
from kernbench.studies.parameter_study import ParameterStudy
from runtime.core.bench_registry import Study, registered
from runtime.core.errors import UsageError


def _declared() -> list[Study]:
    return [entry for entry in registered() if isinstance(entry, Study) and entry.flags]


def test_every_flag_has_a_help_text():
    assert [flag for study in _declared() for flag in study.flags if not flag.help] == []


def test_the_flags_of_a_study_are_the_fields_of_a_class():
    [study] = [each for each in _declared() if each.name == "kv-transfer"]
    assert {flag.name: flag.default for flag in study.flags} == vars(KvFlags())
    assert {flag.option: flag.kind for flag in study.flags}["--new-tokens"] is int


def test_every_class_of_the_catalogue_is_a_study():
    assert all(issubclass(study_class(flags), ParameterStudy) for flags in STUDIES)


def test_rising_numbers_within_the_range_are_taken():
    assert rising_numbers("--tokens", "1, 7,512", 1, 512) == (1, 7, 512)


@pytest.mark.parametrize(
    "text", ["0", "513", "-1", "2,2", "2,1", "1.5", "many", "", "1,", "9" * 5000]
)
def test_other_lists_are_refused_with_the_range(text: str):
    message = f"--tokens {text!r}: expected rising numbers from 1 to 512, separated by commas"
    with pytest.raises(UsageError, match=f"^{re.escape(message)}$"):
        rising_numbers("--tokens", text, 1, 512)


def test_a_value_that_stands_twice_is_refused():
    assert distinct_values("--orders", "b, a") == ["b", "a"]
    with pytest.raises(UsageError, match="--orders a,a: each value once"):
        distinct_values("--orders", "a,a")
