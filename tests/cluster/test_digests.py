"""One digest, on any number of hosts and processes, started by hand."""

from itertools import pairwise
from pathlib import Path

import pytest

from tests.support.network import Network
from tests.support.node_runs import (
    BENCH,
    NODE,
    SCRIPT,
    TIMES_ONLY,
    ByHand,
    Program,
    Secret,
    in_blocks,
    local_digest,
    next_port,
    round_robin,
)

pytestmark = [pytest.mark.slow, pytest.mark.multiproc, pytest.mark.nightly]

ON_HOSTS = [(1, 1), (1, 2), (1, 8), (2, 2), (2, 8), (3, 3), (3, 6), (3, 8)]
"""Hosts and processes."""


@pytest.mark.parametrize(("hosts", "world"), ON_HOSTS)
def test_the_default_bench_has_one_digest_on_any_hosts(
    network: Network, by_hand: ByHand, hosts: int, world: int
):
    report = by_hand.start(in_blocks(network.hosts[:hosts], world), BENCH).succeeded()
    assert report["digest"] == local_digest(BENCH)
    assert [len(lp["sips"]) for lp in report["lps"]] == blocks(BENCH.sips, world)


def blocks(sips: int, world: int) -> list[int]:
    """The number of SIPs of each process: consecutive SIPs, in parts as equal as possible."""
    bounds = [number * sips // world for number in range(world + 1)]
    return [end - begin for begin, end in pairwise(bounds)]


@pytest.mark.parametrize("program", [TIMES_ONLY, SCRIPT])
def test_times_alone_and_a_script_have_the_digest_of_one_host(
    network: Network, by_hand: ByHand, program: Program
):
    # A rank of a script has a process of its own.
    is_script = program is SCRIPT
    placement = in_blocks(network.hosts, program.sips if is_script else 5)
    report = by_hand.start(placement, program).succeeded()
    assert report["digest"] == local_digest(program, procs=None if is_script else 1)


def test_ranks_dealt_round_robin_have_the_digest_too(network: Network, by_hand: ByHand):
    report = by_hand.start(round_robin(network.hosts, 6), BENCH).succeeded()
    assert report["digest"] == local_digest(BENCH)


def test_a_coordinator_with_an_ipv6_address_is_found(network: Network, by_hand: ByHand):
    by_hand.ipv6 = True
    report = by_hand.start(in_blocks(network.hosts[:2], 4), BENCH).succeeded()
    assert report["digest"] == local_digest(BENCH)


def test_the_address_of_a_host_can_be_given(network: Network, by_hand: ByHand):
    run = by_hand.start(in_blocks(network.hosts[:2], 4), BENCH, bind=True)
    assert run.succeeded()["digest"] == local_digest(BENCH)


def test_without_a_secret_a_run_on_one_host_has_the_digest_and_listens_on_loopback_alone(
    network: Network, tmp_path: Path
):
    host = network.hosts[0]
    run = ByHand(tmp_path).start([host] * 4, BENCH)
    seen = set[str]()
    while None in run.codes:
        seen |= host.open_listeners()
    assert seen == set()
    assert run.succeeded()["digest"] == local_digest(BENCH)


def test_with_a_secret_the_listeners_of_a_run_over_hosts_are_seen(
    network: Network, by_hand: ByHand
):
    run = by_hand.start(in_blocks(network.hosts[:2], 4), BENCH)
    seen = set[str]()
    while None in run.codes:
        seen |= network.hosts[0].open_listeners()
    run.succeeded()
    # The coordinator, and two LPs.
    assert len(seen) >= 3
    assert all(each.startswith(network.hosts[0].address) for each in seen)


def test_without_a_secret_a_run_over_hosts_is_refused_in_one_line(network: Network):
    first, second, _ = network.hosts
    words = ("--world", "2", "--master", f"{first.address}:{next_port()}", *BENCH.command)
    started = [
        host.start(*NODE, "--rank", str(rank), *words) for rank, host in enumerate((first, second))
    ]
    for each in started:
        assert each.wait(60) != 0, each.out
        (line,) = each.err.splitlines()
        assert line.startswith("kernbench: error: ")
        assert "secret" in line


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o602])
def test_a_secret_that_others_can_read_or_write_is_refused_in_one_line(
    network: Network, tmp_path: Path, mode: int
):
    secret = Secret.created(tmp_path, mode)
    host = network.hosts[0]
    words = ("--rank", "0", "--world", "2", "--master", f"{host.address}:{next_port()}")
    refused = host.start(*NODE, *words, *secret.words, *BENCH.command)
    assert refused.wait(60) != 0
    (line,) = refused.err.splitlines()
    assert line.startswith("kernbench: error: ")
    assert str(secret.file) in line
    assert "chmod 600" in line
