"""Variables of the environment that the user sets."""

import pytest

from runtime.core.errors import UsageError
from runtime.wire.environment import CHECK_RACES, race_check_requested


@pytest.mark.parametrize(
    ("value", "check"), [("", ""), ("0", ""), ("1", "1"), ("strict", "strict")]
)
def test_runs_are_checked_by_a_variable(
    value: str, check: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CHECK_RACES, value)
    assert race_check_requested() == check


def test_another_value_is_no_silent_absence_of_the_check(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CHECK_RACES, "Strict")
    with pytest.raises(UsageError, match="KERNBENCH_CHECK_RACES is 'Strict': 1 checks each run"):
        race_check_requested()
