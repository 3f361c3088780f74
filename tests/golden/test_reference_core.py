"""The golden digests with the reference in Python: the default suite runs the compiled core."""

import os
import subprocess
import sys

import pytest

from runtime.core.compiled.choice import IS_COMPILED


@pytest.mark.nightly
@pytest.mark.golden
@pytest.mark.skipif(not IS_COMPILED, reason="the suite runs the reference already")
def test_the_reference_gives_the_digests_that_are_stored() -> None:
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "tests/golden/test_digests.py"],
        env={**os.environ, "KERNBENCH_CORE": "python"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout[-4000:]
