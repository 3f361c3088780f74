"""What scripts of PyTorch call on a device: each call works, or its error names the reason."""

import re
from collections.abc import Mapping

import pytest

from tests.torch.conftest import PROGRAMS, Runs

pytestmark = [pytest.mark.slow, pytest.mark.multiproc, pytest.mark.timeout(600)]

PROGRAM = (PROGRAMS / "device_module.py").read_text("utf-8")
NAMES = re.findall(r"^@case\ndef (\w+)", PROGRAM, re.MULTILINE)


@pytest.fixture(scope="module")
def outcomes(run: Runs) -> Mapping[str, str]:
    return dict(re.findall(r"^= (\w+) \| (\w+)$", run("device_module.py"), re.MULTILINE))


@pytest.mark.parametrize("name", NAMES)
def test_a_script_calls_it_as_on_other_devices(name: str, outcomes: Mapping[str, str]):
    assert outcomes[name] == "ok"
