"""Conditions under which the steps of a product are computed ahead."""

import pytest

from runtime.core.compiled.choice import IS_COMPILED
from runtime.core.errors import UsageError
from sip_node.chip.fast_forward import fast_forward
from sip_node.pdes.engine import Engine


@pytest.mark.parametrize("value", ["", "1"])
def test_it_is_part_of_the_compiled_core(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNBENCH_FAST_FORWARD", value)
    assert (fast_forward(Engine()) is not None) == IS_COMPILED


def test_the_user_switches_it_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNBENCH_FAST_FORWARD", "0")
    assert fast_forward(Engine()) is None


def test_another_value_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNBENCH_FAST_FORWARD", "off")
    with pytest.raises(UsageError, match=r"KERNBENCH_FAST_FORWARD is 'off': 0 simulates every"):
        fast_forward(Engine())
