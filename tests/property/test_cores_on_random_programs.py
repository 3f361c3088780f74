"""Random programs on random hardware: both cores report the same, to the last counter."""

import os
import subprocess
import sys

import pytest

from runtime.core.compiled.choice import IS_COMPILED

pytestmark = pytest.mark.skipif(not IS_COMPILED, reason="the compiled core does not run")


def reports(core: str, first: int, count: int) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "tests.support.random_programs", str(first), str(count)],
        env={**os.environ, "KERNBENCH_CORE": core},
        stdout=subprocess.PIPE,
        text=True,
    )


def differing(first: int, count: int) -> list[str]:
    """The reports of the reference that are not those of the compiled core."""
    with reports("python", first, count) as reference, reports("compiled", first, count) as twin:
        expected, found = (each.communicate()[0].splitlines() for each in (reference, twin))
    assert len(expected) == len(found) == count
    return [line for line, other in zip(expected, found, strict=True) if line != other]


@pytest.mark.slow
def test_both_cores_report_the_same_of_random_programs() -> None:
    assert differing(0, 20) == []


@pytest.mark.nightly
def test_both_cores_report_the_same_of_many_random_programs() -> None:
    assert differing(20, 400) == []
