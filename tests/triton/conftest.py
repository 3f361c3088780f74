"""Triton kernels on simulated PEs: `make test-triton`, or with Triton on the import path."""

import os

import pytest

# Read when Triton is imported.
os.environ["TRITON_INTERPRET"] = "1"


def pytest_configure() -> None:
    pytest.importorskip("triton", reason="Triton is not installed: make setup-triton")
