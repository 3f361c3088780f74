"""Addresses of the master and of this host."""

import pytest

from kernbench.cli.launchers.address import (
    Master,
    is_address_of_this_host,
    parse_master,
    source_address,
)
from runtime.core.errors import UsageError


@pytest.mark.parametrize(
    ("text", "master"),
    [
        ("node1:29400", Master("node1", 29400)),
        ("10.0.0.1:1", Master("10.0.0.1", 1)),
        ("[fd00::1]:29400", Master("fd00::1", 29400)),
    ],
)
def test_a_master_is_a_host_and_a_port(text: str, master: Master):
    assert parse_master(text, "--master") == master
    assert str(master) == text


@pytest.mark.parametrize("text", ["node1", "node1:", ":29400", "node1:0", "node1:65536", "a:b", ""])
def test_what_is_no_master_is_one_line(text: str):
    with pytest.raises(UsageError, match=f"--master: expected HOST:PORT .*got {text!r}"):
        parse_master(text, "--master")


def test_an_address_of_ipv6_without_brackets_has_a_hint():
    with pytest.raises(UsageError, match=r"in brackets: \[fd00::1\]:29400"):
        parse_master("fd00::1:29400", "--master")


def test_an_unknown_host_is_one_line():
    with pytest.raises(UsageError, match=r"'no\.such\.host\.invalid' of the master has no address"):
        Master("no.such.host.invalid", 1).address  # noqa: B018 - it raises


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_packets_to_the_loopback_come_from_the_loopback(address: str):
    if not is_address_of_this_host(address):
        pytest.skip("this host has no IPv6")
    assert source_address(address) == address
    assert Master(address, 1).is_loopback


def test_an_address_of_documentation_is_none_of_this_host():
    # RFC 5737 and RFC 3849: addresses that no host has.
    assert not is_address_of_this_host("192.0.2.1")
    assert not is_address_of_this_host("2001:db8::1")
