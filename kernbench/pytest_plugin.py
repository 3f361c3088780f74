"""`pytest --kernbench-check`: each simulation that a test runs is checked for races and undefined
values, and a test with a report fails.

The plugin of the entry point `pytest11` is this module, which every session of pytest imports. So
it loads nothing of kernbench before the flag is given.
"""

from collections.abc import Generator

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the flags."""
    group = parser.getgroup("kernbench")
    group.addoption(
        "--kernbench-check",
        action="store_true",
        help="check each simulation of a test for races and undefined values",
    )
    group.addoption(
        "--kernbench-check-strict",
        action="store_true",
        help="the same, with the order of streams that CUDA has",
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Check the simulations of a test, its fixtures included."""
    is_strict = bool(item.config.getoption("kernbench_check_strict"))
    if not is_strict and not item.config.getoption("kernbench_check"):
        return (yield)
    from kernbench.explain.check.checked_runs import checked_runs

    with checked_runs(is_strict=is_strict) as reports:
        item.stash[_REPORTS] = reports
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Fail a test that has passed, if one of its simulations has a report."""
    result = yield
    reports = item.stash.get(_REPORTS, None)
    if reports:
        pytest.fail("\n\n".join(reports), pytrace=False)
    return result


_REPORTS = pytest.StashKey[list[str]]()
