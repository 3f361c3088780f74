"""The public names of the package, which are imported on first use."""

import subprocess
import sys

import pytest

import kernbench


def test_only_the_decorator_of_kernels_needs_pytorch(monkeypatch: pytest.MonkeyPatch):
    for name in [each for each in sys.modules if each.startswith("kernbench.torch_backend")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "torch", None)
    others = [getattr(kernbench, name) for name in kernbench.__all__ if name != "kernel"]
    assert len(others) == len(kernbench.__all__) - 1
    with pytest.raises(ImportError) as raised:
        _ = kernbench.kernel
    assert str(raised.value) == (
        "kernbench.kernel makes operators of PyTorch, which is not installed: make setup-torch"
    )


def test_the_package_imports_nothing_of_pytorch():
    code = "import sys, kernbench; kernbench.tl; print(*(name for name in sys.modules))"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=True, text=True
    )
    assert "runtime.language.tl" in loaded.stdout.split()
    assert "torch" not in loaded.stdout.split()
