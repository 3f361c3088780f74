"""The mode without the C++ part: process groups of tensors of the host, no tensors of a device."""

import re
from pathlib import Path

import pytest

from tests.torch.conftest import Runs
from tests.torch.test_distributed import digest, reported, values

pytestmark = [pytest.mark.slow, pytest.mark.multiproc, pytest.mark.timeout(600)]

REDUCED = {"KERNBENCH_TORCH_NATIVE": "0", "DEVICE": "cpu"}
ANNOUNCED = "kernbench: reduced mode: no tensors of the device 'ahbm'"


def test_collectives_of_tensors_of_the_host_give_what_gloo_gives(run: Runs, on_gloo: Runs):
    output = run("collectives.py", sips=4, **REDUCED)
    assert output.count(ANNOUNCED) == 1
    assert reported(output) == reported(on_gloo("collectives.py", ranks=4))


def test_what_pytorch_builds_on_groups_has_the_values_of_gloo(
    run: Runs, on_gloo: Runs, tmp_path: Path
):
    expected = values(on_gloo("features.py", ranks=2, TEMP_DIR=str(tmp_path)))
    found = values(run("features.py", sips=2, TEMP_DIR=str(tmp_path), **REDUCED))
    assert found[0] == expected[0]
    assert found[1] == pytest.approx(expected[1], rel=1e-5, abs=1e-5)


def test_a_program_of_tensors_of_the_host_has_one_digest_with_and_without_the_part_in_cpp(
    run: Runs,
):
    outputs = [run("data_parallel.py", sips=2, **each) for each in ({"DEVICE": "cpu"}, REDUCED)]
    assert reported(outputs[0]) == reported(outputs[1]) != []
    assert digest(outputs[0]) == digest(outputs[1])


def test_each_use_of_the_device_names_the_reason_and_the_remedy(run: Runs):
    output = run("reduced_mode.py", KERNBENCH_TORCH_NATIVE="0")
    outcomes = dict(re.findall(r"^= (.+?) \| (.*)$", output, re.MULTILINE))
    of_cpp = {name: outcomes.pop(name) for name in list(outcomes) if "C++" in name}
    assert len(outcomes) == 24
    for outcome in outcomes.values():
        assert outcome.startswith("NoDeviceError: ")
        assert "because its C++ part (allocator, hooks) is switched off" in outcome
        assert "apt install g++" in outcome
    assert [each.partition(":")[0] for each in of_cpp.values()] == ["RuntimeError"] * 2


@pytest.mark.parametrize(
    ("flags", "environment", "error"),
    [
        (["--as-cuda"], {"KERNBENCH_TORCH_NATIVE": "0"}, "--as-cuda puts the device 'ahbm' in"),
        ([], {"KERNBENCH_TORCH_NATIVE": "off"}, "KERNBENCH_TORCH_NATIVE is 'off': 0 runs without"),
    ],
)
def test_a_run_without_a_device_is_refused_where_it_needs_one(
    flags: list[str], environment: dict[str, str], error: str, run: Runs
):
    assert error in run("reduced_mode.py", *flags, code=1, **environment)


def test_the_part_in_cpp_is_lacking_where_there_is_no_compiler(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    from kernbench.torch_backend.runtime import native_build
    from runtime.core.code import native_library

    changed = tmp_path / "device.cpp"
    changed.write_text("// Compiled nowhere yet.\n")
    monkeypatch.setattr(native_library, "SOURCE", changed)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    with pytest.raises(native_build.NoNativePartError, match=r"there is no C\+\+ compiler here"):
        native_build.native_module()
    monkeypatch.setenv("CXX", "none++")
    with pytest.raises(ImportError, match=r"CXX is 'none\+\+', which is no program"):
        native_build.native_module()
