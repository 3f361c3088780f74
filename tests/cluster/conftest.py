import statistics
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.network import Network, NetworkUnavailable
from tests.support.node_runs import ByHand, Secret

TIMES: pytest.StashKey[dict[str, list[float]]] = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser):
    parser.addoption("--times", type=int, default=2, help="how often each fault is caused")


def pytest_configure(config: pytest.Config):
    config.stash[TIMES] = defaultdict(list)


def pytest_generate_tests(metafunc: pytest.Metafunc):
    """`number` counts the runs of a fault, `undisturbed` those without one: five times as many."""
    times = int(metafunc.config.getoption("--times", 2) or 0)
    for name, count in (("number", times), ("undisturbed", 5 * times)):
        if name in metafunc.fixturenames:
            metafunc.parametrize(name, range(count))


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    rows = config.stash[TIMES]
    if rows:
        terminalreporter.section("seconds from a fault to the end of every process")
        terminalreporter.write_line(f"{'fault':30} {'times':>5} {'median':>7} {'slowest':>7}")
        for name, seconds in rows.items():
            terminalreporter.write_line(
                f"{name:30} {len(seconds):5} {statistics.median(seconds):7.2f} {max(seconds):7.2f}"
            )


@pytest.fixture
def seconds_of_faults(request: pytest.FixtureRequest) -> dict[str, list[float]]:
    """The seconds of each fault by its name; printed at the end."""
    return request.config.stash[TIMES]


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """A directory with a short name: the path of a socket in it has at most about 100 bytes."""
    with tempfile.TemporaryDirectory(prefix="kb-") as folder:
        yield Path(folder)


@pytest.fixture
def network(tmp_path: Path) -> Iterator[Network]:
    """Three hosts, which must be as empty at the end of the test as at its start."""
    try:
        created = Network.of(3, tmp_path)
        entered = created.__enter__()
    except NetworkUnavailable as reason:
        pytest.skip(str(reason))
    try:
        yield entered
        assert {host.name: host.processes() for host in entered.hosts if host.processes()} == {}
        assert {host.name: host.left_over() for host in entered.hosts if host.left_over()} == {}
    finally:
        created.__exit__(None, None, None)


@pytest.fixture
def secret(tmp_path: Path) -> Secret:
    return Secret.created(tmp_path)


@pytest.fixture
def by_hand(tmp_path: Path, secret: Secret) -> ByHand:
    """Starts runs over hosts by hand."""
    return ByHand(tmp_path, secret)
