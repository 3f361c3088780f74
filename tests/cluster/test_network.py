"""The hosts of these tests behave as hosts: they reach each other over a switch, cables can be
pulled, and nothing of them is left.
"""

import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from runtime.core.wallclock import now_s, sleep_s
from tests.support.network import Host, Network, NetworkUnavailable, check_available
from tests.support.runs import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.multiproc, pytest.mark.nightly]

ECHO = """
import socket, sys
family = socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET
with socket.create_server((sys.argv[1], 7007), family=family) as server:
    connection, _ = server.accept()
    while received := connection.recv(100):
        connection.sendall(received)
"""
CALL = """
import socket, sys
with socket.create_connection((sys.argv[1], 7007), timeout=1) as connection:
    for line in sys.stdin:
        connection.sendall(b"x")
        try:
            print(connection.recv(1).decode(), flush=True)
        except TimeoutError:
            print("nothing", flush=True)
"""


class Caller:
    """A connection from one host to another, which sends a byte and waits for its return."""

    def __init__(self, source: Host, target: Host, address: str) -> None:
        self.server = target.start(sys.executable, "-c", ECHO, address)
        wait_until(lambda: bool(target.open_listeners()))
        self.client = subprocess.Popen(
            source.command(sys.executable, "-c", CALL, address),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def call(self) -> str:
        assert self.client.stdin is not None
        assert self.client.stdout is not None
        self.client.stdin.write("\n")
        self.client.stdin.flush()
        return self.client.stdout.readline().strip()

    def end(self) -> None:
        self.client.communicate(timeout=10)
        self.server.wait(10)


def wait_until(condition: Callable[[], bool]) -> None:
    deadline_s = now_s() + 10
    while not condition():
        assert now_s() < deadline_s
        sleep_s(0.01)


@pytest.mark.parametrize("fault", [Host.cut, Host.drop])
@pytest.mark.parametrize("address", ["address", "address6"])
def test_hosts_reach_each_other_until_the_cable_is_cut_or_the_switch_drops_frames(
    network: Network, address: str, fault: Callable[[Host], None]
):
    source, target = network.hosts[:2]
    caller = Caller(source, target, getattr(target, address))
    assert caller.call() == "x"
    fault(target)
    assert caller.call() == "nothing"
    target.restore()
    wait_until(lambda: caller.call() == "x")
    caller.end()


def test_a_host_has_processes_a_name_and_shared_memory_of_its_own(network: Network):
    first, second, _ = network.hosts
    code = (
        "import os, socket; open('/dev/shm/block', 'w').close(); "
        "print(socket.gethostname(), os.getpid(), os.environ.get('RANK'))"
    )
    started = first.start(sys.executable, "-c", code)
    assert started.wait(10) == 0
    name, pid, rank = started.out.split()
    assert (name, rank) == ("kb1", "None")
    assert int(pid) < 20
    assert first.left_over() == [f"/proc/{first.first_pid}/root/dev/shm/block"]
    assert second.left_over() == []
    Path(first.left_over()[0]).unlink()


def test_a_stopped_process_is_a_process_of_its_host_until_it_is_killed(network: Network):
    host = network.hosts[0]
    started = host.start("sleep", "1000")
    pid = started.pid
    wait_until(lambda: host.processes().get(pid, "").startswith("sleep"))
    started.send(signal.SIGSTOP)
    assert network.hosts[1].processes() == {}
    assert host.processes() == {pid: "sleep 1000"}
    started.send(signal.SIGKILL)
    started.resume()
    assert started.wait(10) == -signal.SIGKILL
    assert host.processes() == {}


def test_a_listener_beyond_loopback_is_seen(network: Network):
    host = network.hosts[2]
    for address, reachable in (("127.0.0.1", set[str]()), ("0.0.0.0", {"0.0.0.0:7007"})):
        started = host.start(sys.executable, "-c", ECHO, address)
        wait_until(lambda address=address: f"{address}:7007" in host.listeners())
        assert host.open_listeners() == reachable
        started.send(signal.SIGKILL)
        started.wait(10)


def test_a_user_without_rights_is_given_the_reason(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with pytest.raises(NetworkUnavailable, match="needs root: hosts are network namespaces"):
        check_available()


def test_nothing_of_a_network_is_left_when_its_test_is_killed(network: Network, tmp_path: Path):
    code = f"""
import os, signal, sys
from pathlib import Path
from tests.support.network import Network
with Network.of(1, Path({str(tmp_path / "inner")!r})) as network:
    network.hosts[0].start("sleep", "1000")
    print(network.hosts[0].first_pid, network.switch.first_pid, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""
    (tmp_path / "inner").mkdir()
    killed = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False
    )
    assert killed.returncode == -signal.SIGKILL
    for pid in killed.stdout.split():
        wait_until(lambda pid=pid: not Path(f"/proc/{pid}").exists())
    assert "port1" not in [name for _, name in socket.if_nameindex()]
