"""A core in which Cython checks the arithmetic of integers in C.

Python's integers have any size, and their quotients are rounded down. Those of the compiled core
have 64 bits, and their quotients are rounded to zero. So a text must not overflow, nor divide
numbers of different signs. Where the core wraps on purpose, the source has `overflowcheck(False)`
with the reason.
"""

import subprocess
from pathlib import Path

import pytest

from tests.support.core_copy import CoreCopy

pytestmark = [
    pytest.mark.slow,
    pytest.mark.nightly,
    # One worker builds the core, which all tests share.
    pytest.mark.xdist_group("overflow checks"),
]

TESTS = (
    "tests/golden",
    "tests/property/test_compiled_core.py",
    "tests/property/test_compiled_crossings.py",
    "tests/property/test_credited_machines.py",
    "tests/property/test_cores_on_random_programs.py",
    "tests/property/test_fast_forward.py",
)
# No component has a time before the start of the run: the wait of such a message would wrap to a
# negative one, and the cycle of such a time would be rounded up by one core and down by the other.
OVERFLOW = """
from sip_node.chip.fabric.server import Server
Server("planted", 1).reserve(-(1 << 63), 0, 0)
"""
DIVISION = """
from types import SimpleNamespace
from sip_node.chip.fabric.clocked.worm import NocClock
NocClock(SimpleNamespace(clock_ghz=2.0, flit_bytes=128)).cycle(-501)
"""
DIRECTIVES = {"overflowcheck": True, "cdivision_warnings": True}
# The build takes most of the time. Cython checks differences of pointers as those of integers: that
# is right for bytes, and the C compiler warns.
FLAGS = ("-O0", "-Wno-int-conversion")
OPTIONS = ("-q", "-s", "-p", "no:cacheprovider", "--timeout", "900")
UNRAISED = "Exception ignored in"
"""Beginning of the text that Python prints of an error in a function that cannot raise it."""


@pytest.fixture(scope="module")
def checked(tmp_path_factory: pytest.TempPathFactory) -> CoreCopy:
    """A copy of the checkout with a checked core."""
    copy = CoreCopy(tmp_path_factory.mktemp("checked"))
    copy.build(DIRECTIVES, FLAGS)
    return copy


def run(copy: CoreCopy, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return copy.run(arguments, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


@pytest.mark.timeout(1200)
@pytest.mark.parametrize(
    ("planted", "report"),
    [
        (OVERFLOW, "OverflowError: value too large"),
        (DIVISION, "RuntimeWarning: division with oppositely signed operands"),
    ],
    ids=["overflow", "division"],
)
def test_a_planted_fault_is_reported(checked: CoreCopy, planted: str, report: str) -> None:
    assert report in run(checked, "-c", planted).stdout


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("path", TESTS)
def test_nothing_overflows(checked: CoreCopy, path: str) -> None:
    assert (checked.folder / Path(path)).exists()
    done = run(checked, "-m", "pytest", *OPTIONS, path)
    assert done.returncode == 0, done.stdout
    assert UNRAISED not in done.stdout
