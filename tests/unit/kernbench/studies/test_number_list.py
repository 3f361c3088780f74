"""Lists of numbers in flags: what is refused, with the flag, the text and the range."""

import re

import pytest

from kernbench.studies.number_list import distinct_values, rising_numbers
from runtime.core.errors import UsageError


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
