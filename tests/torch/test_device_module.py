"""Calls of PyTorch scripts on a device: each works, or its error names the reason."""

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


def test_a_script_without_a_seed_has_one_digest(run: Runs):
    digests = [
        re.findall(r"^digest +(\w+)", run("device_module.py", **given), re.MULTILINE)
        for seed in ("0", "3")
        for given in ({"CASES": "save_and_load,checkpointing", "PYTHONHASHSEED": seed},)
    ]
    assert digests[0] == digests[1] != []


@pytest.mark.parametrize("name", NAMES)
def test_a_script_calls_it_as_on_other_devices(name: str, outcomes: Mapping[str, str]):
    assert outcomes[name] == "ok"


def test_the_time_of_an_operator_does_not_depend_on_earlier_allocations(run: Runs):
    (times,) = re.findall(r"^= (.*)$", run("equal_times.py", "--no-trace"), re.MULTILINE)
    assert len(times.split()) == 4
    assert len(set(times.split())) == 1


def test_elements_are_set_across_devices_and_hooks_raise_as_on_a_cpu(run: Runs):
    outcomes = dict(re.findall(r"^= ([\w ]+) \| (.*)$", run("set_data.py"), re.MULTILINE))
    wrong = "TypeError: expected Variable, but hook returned 'int'"
    assert outcomes.pop("no elements").startswith("RuntimeError: Attempted to call `variable.set")
    assert outcomes == {
        "data": "[('ahbm', 'ahbm', [-1.0, -1.0, -1.0]), ('cpu', 'cpu', [-3.0, -3.0, -3.0])]",
        "error": "ValueError: of the hook",
        "no tensor": wrong,
        "no tensor after": wrong,
    }
