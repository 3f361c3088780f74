"""The check of launches is loaded by its entry point."""

import pytest

from runtime.language.mock import launch_check
from runtime.language.mock.launch_check import load_check


def test_an_installation_without_the_entry_point_is_an_error_with_advice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(launch_check, "_GROUP", "kernbench.of_an_earlier_version")
    with pytest.raises(TypeError, match=r"'kernbench\.of_an_earlier_version'.* install it again"):
        load_check()
