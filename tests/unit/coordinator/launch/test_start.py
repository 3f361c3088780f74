"""The launch of processes, before and after their number is known."""

from dataclasses import dataclass, field

import pytest

from coordinator.launch.launcher import LpSpec
from coordinator.launch.start import Launch


class FakeChild:
    """A process that ends only when it is killed."""

    def __init__(self, spec: LpSpec, pid: int) -> None:
        self.spec, self.pid = spec, pid
        self.killed = False

    def wait(self, timeout_s: float) -> int | None:
        return -9 if self.killed else None

    def terminate(self) -> None:
        self.killed = True

    def kill(self) -> None:
        self.killed = True


@dataclass
class FakeLauncher:
    started: list[FakeChild] = field(default_factory=list)

    def start(self, spec: LpSpec) -> FakeChild:
        self.started.append(FakeChild(spec, 100 + len(self.started)))
        return self.started[-1]

    def running(self) -> list[tuple[int, bool]]:
        return [(c.spec.lp, c.spec.lone) for c in self.started if not c.killed]


@pytest.fixture
def launcher() -> FakeLauncher:
    return FakeLauncher()


def test_a_right_guess_is_completed(launcher: FakeLauncher) -> None:
    with Launch(launcher) as launch:
        launch.start(4, at_most=2)
        assert launcher.running() == [(0, False), (1, False)]
        launch.start(4)
        assert launcher.running() == [(lp, False) for lp in range(4)]
        assert launch.children.pids == (100, 101, 102, 103)
    assert launcher.running() == []


@pytest.mark.parametrize(
    ("guess", "procs", "started"), [(4, 2, 4), (1, 2, 3), (2, 1, 3), (2, 2, 2), (3, 4, 4)]
)
def test_a_wrong_guess_is_corrected(
    guess: int, procs: int, started: int, launcher: FakeLauncher
) -> None:
    with Launch(launcher) as launch:
        launch.start(guess)
        launch.start(procs)
        # The only process of a run has the terminal: it cannot be one of several.
        assert launcher.running() == [(lp, procs == 1) for lp in range(procs)]
        assert len(launcher.started) == started
        assert len(launch.children.pids) == procs


def test_all_processes_have_the_id_and_the_directory_of_the_run(launcher: FakeLauncher) -> None:
    with Launch(launcher) as launch:
        launch.start(2)
        specs = [child.spec for child in launcher.started]
        assert {spec.run_id for spec in specs} == {launch.run_id}
        assert {spec.directory for spec in specs} == {launch.directory.path}
        assert launch.directory.path.exists()
    assert not launch.directory.path.exists()


def test_the_start_counts_from_the_given_time(launcher: FakeLauncher) -> None:
    with Launch(launcher, began_s=3.0) as launch:
        assert launch.began_s == 3.0
