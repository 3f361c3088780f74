"""Random delays: uniform, by seed, source and number alone."""

import pytest

from runtime.core.errors import ConfigError
from runtime.model.jitter import (
    Jitter,
    jitter_bounds,
    key_of_source,
    link_jitter_ns,
    links_have_jitter,
    nominal_text,
)
from runtime.model.topology import Topology, parse_topology
from tests.support.topologies import SOURCE, variant, variant_text

PORT = "io.ucie.sip1"


def drawn(topology: Topology, name: str, count: int, bound_ns: float = 1.0) -> list[int]:
    source = Jitter(topology, name, bound_ns)
    return [source.next_ps() for _ in range(count)]


def test_delays_are_uniform_from_0_to_the_bound() -> None:
    delays = drawn(variant(), "link", 4000, bound_ns=0.003)
    assert set(delays) == {0, 1, 2, 3}
    # Four values of equal probability: 5 standard deviations of a binomial count.
    spread = 5 * (4000 * 0.25 * 0.75) ** 0.5
    assert all(abs(delays.count(each) - 1000) < spread for each in range(4))


def test_a_delay_depends_on_the_seed_the_source_and_its_number_alone() -> None:
    first = drawn(variant(), "link", 50)
    assert drawn(variant(), "link", 20) == first[:20]
    assert drawn(variant(), "other link", 50) != first
    assert drawn(variant(jitter__seed=1), "link", 50) != first
    # A larger bound stretches all of them.
    assert all(
        wide // 10 in {narrow, narrow + 1, narrow - 1}
        for wide, narrow in zip(drawn(variant(), "link", 50, 10.0), first, strict=True)
    )


def test_a_port_has_the_bound_of_its_own_or_that_of_the_file() -> None:
    topology = variant(
        jitter__crossing_ns=3,
        overrides={"sip1.ucie.sip*": {"crossing_ns": 7}},
        system__sips__count=3,
    )
    assert link_jitter_ns(topology, 0, PORT) == 3
    assert link_jitter_ns(topology, 1, "io.ucie.sip0") == 7


def test_links_have_jitter_by_the_file_or_by_a_part() -> None:
    assert not links_have_jitter(variant(jitter__command_ns=3, jitter__start_skew_ns=3))
    assert links_have_jitter(variant(jitter__crossing_ns=3))
    assert links_have_jitter(variant(overrides={"sip0.ucie.sip1": {"crossing_ns": 3}}))
    assert not links_have_jitter(variant(overrides={"sip0.ucie.sip1": {"crossing_ns": 0}}))


def test_a_report_has_all_bounds_and_measures_the_machine_without_them() -> None:
    text = variant_text(
        jitter__command_ns=5,
        overrides={
            "sip1.host": {"start_skew_ns": 3, "launch_overhead_ns": 2},
            "sip0.ucie.sip1": {"crossing_ns": 1},
        },
    )
    assert jitter_bounds(variant(jitter__command_ns=5)) == "command_ns 5"
    nominal = nominal_text(parsed(text), text)
    assert jitter_bounds(parsed(nominal)) == ""
    assert parsed(nominal).overrides == {"sip1.host": {"launch_overhead_ns": 2}}
    assert nominal_text(variant(), "as it is") == "as it is"


def parsed(text: str) -> Topology:
    return parse_topology(text, SOURCE)


def test_sources_have_the_keys_of_their_bounds() -> None:
    assert key_of_source("start") == "jitter.start_skew_ns"
    assert key_of_source("command") == "jitter.command_ns"
    assert key_of_source("ucie.sip1") == "jitter.crossing_ns"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"jitter__crossing_ns": -1}, "jitter.crossing_ns: should be greater than or equal to 0"),
        ({"jitter__command_ns": "5"}, "jitter.command_ns: should be a valid number"),
        ({"jitter__seed": 0.5}, "jitter.seed: should be a valid integer"),
        ({"jitter__start_ns": 5}, "jitter.start_ns: unknown key; did you mean 'start_skew_ns'?"),
        (
            {"overrides": {"sip0.host": {"start_skew": 5}}},
            "overrides.sip0.host.start_skew: unknown key; did you mean 'start_skew_ns'?",
        ),
        (
            {"overrides": {"sip0.ucie.sip1": {"crossing_ns": -5}}},
            "overrides.sip0.ucie.sip1.crossing_ns: should be greater than or equal to 0",
        ),
        (
            {"overrides": {"cube0.ucie.E": {"crossing_ns": 5}}},
            "overrides.cube0.ucie.E.crossing_ns: unknown key",
        ),
    ],
)
def test_a_wrong_bound_is_an_error_that_names_the_key(
    changes: dict[str, object], message: str
) -> None:
    with pytest.raises(ConfigError) as error:
        variant(**changes)
    assert message in str(error.value)
