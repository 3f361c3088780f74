"""Limits of the shell, given by the test, against what a run needs."""

import os
import resource

import pytest

from coordinator.launch.limits import require_limits
from runtime.core.errors import UsageError

Limits = dict[int, tuple[int, int]]
NONE = resource.RLIM_INFINITY


@pytest.fixture
def limits(monkeypatch: pytest.MonkeyPatch) -> Limits:
    found = {resource.RLIMIT_NOFILE: (NONE, NONE), resource.RLIMIT_AS: (NONE, NONE)}
    monkeypatch.setattr(resource, "getrlimit", lambda which: found[which])
    monkeypatch.setattr(resource, "setrlimit", found.__setitem__)
    return found


def test_a_shell_without_limits_runs_any_number_of_processes(limits: Limits) -> None:
    before = dict(limits)
    require_limits(256)
    assert limits == before


@pytest.mark.parametrize(("procs", "needed"), [(1, 30), (16, 120), (256, 1560)])
def test_too_few_open_files_are_one_line_with_the_number(
    limits: Limits, procs: int, needed: int
) -> None:
    limits[resource.RLIMIT_NOFILE] = (needed, needed)
    require_limits(procs)
    limits[resource.RLIMIT_NOFILE] = (needed - 1, needed - 1)
    with pytest.raises(UsageError) as caught:
        require_limits(procs)
    processes = "1 process" if procs == 1 else f"{procs} processes"
    assert str(caught.value) == (
        f"ulimit -n is {needed - 1:,} open files, and a run of {processes} needs {needed:,} in "
        f"each: ulimit -n {needed}, or fewer processes with --procs"
    )


@pytest.mark.parametrize("hard", [4096, NONE])
def test_the_soft_limit_of_open_files_is_raised_within_the_hard_one(
    limits: Limits, hard: int
) -> None:
    limits[resource.RLIMIT_NOFILE] = (64, hard)
    require_limits(16)
    assert limits[resource.RLIMIT_NOFILE] == (120, hard)


def test_too_little_address_space_is_one_line_with_the_number(
    limits: Limits, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    # Two stacks of 8 MiB and two arenas of 64 MiB for each of the processes.
    limits[resource.RLIMIT_AS] = (994_912 << 10, NONE)
    require_limits(2)
    limits[resource.RLIMIT_AS] = (500_000 << 10, NONE)
    with pytest.raises(UsageError) as caught:
        require_limits(2)
    assert str(caught.value) == (
        "ulimit -v is 500,000 KiB of address space, and a run of 2 processes needs 994,912: "
        "ulimit -v unlimited"
    )
