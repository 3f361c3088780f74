"""The declarations of keys: units, bounds, meanings, groups and versions."""

from typing import Annotated, Literal

import msgspec
import pytest

from runtime.core.config.config_file import from_values
from runtime.core.config.section import Section
from runtime.core.errors import ConfigError
from runtime.model.keys import (
    HardwareKey,
    hardware_keys,
    keys_of_group,
    value_text,
)
from runtime.model.schema.draws import Among, Fixed, Scaled, among
from runtime.model.schema.meanings import ActsOn, KeyGroup
from runtime.model.schema.quantities import Count, Gbs, Mm, Ns, Overhead
from runtime.model.schema.topology_schema import VERSION, Topology
from runtime.model.topology import shipped_values
from tests.support.random_topologies import default_content

KEYS = {key.path: key for key in hardware_keys()}


class Port(Section, frozen=True):
    depth_cycles: Annotated[int, msgspec.Meta(ge=2, le=2048), Scaled()]
    stages: Annotated[Count, among(1, 2), ActsOn("a router", unit="cycles")]
    at_mm: Annotated[tuple[Mm, Mm], ActsOn("x, y")]
    kind: Literal["near", "far"]
    late: Annotated[Ns | None, ActsOn("own meaning", since=2), KeyGroup.DELAY] = None


class Board(Section, frozen=True):
    port: Annotated[Port, ActsOn("a port")]
    bytes_per_lane: Gbs
    late_gbs: Annotated[Gbs, ActsOn("added without a default", since=2)]


class LateSection(Section, frozen=True):
    """A section of the second version: its keys have defaults, and it has none itself."""

    port_ns: Annotated[Ns, ActsOn("a port", since=2)] = 0.0


class BoardWithLateSection(Section, frozen=True):
    count: Count
    late: LateSection


BOARD = {key.path: key for key in hardware_keys(Board)}


def late_and_required(schema: type[Section]) -> list[str]:
    return [key.path for key in hardware_keys(schema) if key.since > 1 and key.is_required]


def test_every_key_states_in_a_line_what_it_acts_on():
    assert [path for path, key in KEYS.items() if not key.acts_on.strip()] == []
    assert [path for path, key in KEYS.items() if "\n" in key.acts_on or "|" in key.acts_on] == []


def test_what_a_choice_acts_on_names_its_alternatives():
    choices = [key for key in KEYS.values() if key.kind == "choice"]
    missing = [
        (key.path, name)
        for key in choices
        for name in key.bounds.split(", ")
        if name not in key.acts_on
    ]
    assert choices
    assert missing == []


def test_keys_are_in_the_order_of_the_schema():
    assert list(BOARD) == [
        *("port.depth_cycles", "port.stages", "port.at_mm", "port.kind", "port.late"),
        *("bytes_per_lane", "late_gbs"),
    ]


@pytest.mark.parametrize(
    ("path", "unit"),
    [
        ("ns_per_mm", "ns/mm"),
        ("packet_bytes", "B"),
        ("hbm.slice_gib", "GiB"),
        ("pe.tcm_mb", "MiB"),
        ("noc.clock_ghz", "GHz"),
        ("ucie.bw_gbs", "GB/s"),
        ("pe.gemm.macs_per_cycle", "MACs/cycle"),
        ("host.fallback_ns_per_element", "ns/element"),
        ("host.fallback_overhead_ns", "ns"),
        # The name of the section has it.
        ("cube.size_mm.w", "mm"),
        ("pe.math.cycles.add", "cycles"),
        # Declared, since no name has it.
        ("noc.router_stages", "cycles"),
        ("pe.dma.outstanding", "packets"),
        ("cube.pe_layout.pe_per_corner", ""),
        ("cube.hbm_ctrl.efficiency", ""),
    ],
)
def test_the_unit_follows_from_the_names_or_is_declared(path: str, unit: str):
    assert KEYS[path].unit == unit


@pytest.mark.parametrize(
    ("path", "kind", "bounds"),
    [
        ("port.depth_cycles", "integer", "2 to 2,048"),
        ("port.stages", "integer", "1 to 1,048,576"),
        ("port.at_mm", "list", "each 0 to 10,000"),
        ("port.kind", "choice", "near, far"),
        ("port.late", "number", "0 to 1,000,000,000 or null"),
    ],
)
def test_a_key_has_the_bounds_of_its_annotation(path: str, kind: str, bounds: str):
    assert (BOARD[path].kind, BOARD[path].bounds) == (kind, bounds)


def test_the_meaning_of_a_section_is_that_of_its_keys_without_one():
    assert BOARD["port.depth_cycles"].acts_on == "a port"
    assert BOARD["port.late"].acts_on == "own meaning"
    assert BOARD["bytes_per_lane"].acts_on == ""


def test_the_last_range_counts_and_a_choice_is_drawn_from_its_alternatives():
    assert BOARD["port.stages"].draw == Among((1, 2))
    assert BOARD["port.kind"].draw == Among(("near", "far"))


def test_a_group_has_the_keys_that_state_it_or_whose_type_does():
    assert BOARD["port.late"].groups == {KeyGroup.DELAY}
    assert BOARD["late_gbs"].groups == {KeyGroup.BANDWIDTH}
    (key,) = hardware_keys(Overhead)
    assert key.groups == {KeyGroup.DELAY}


def test_the_bandwidths_are_all_keys_in_bytes_per_time():
    bandwidths = keys_of_group(KeyGroup.BANDWIDTH)
    assert bandwidths == [key for key in KEYS.values() if key.unit == "GB/s"]
    assert len(bandwidths) > 10


def test_a_key_that_is_added_after_version_1_has_a_default():
    assert late_and_required(Topology) == []
    # Seen where it is violated.
    assert late_and_required(Board) == ["late_gbs"]


def test_the_version_of_the_schema_is_that_of_its_last_key():
    assert max(key.since for key in KEYS.values()) == VERSION


def without_late_keys(
    content: dict[str, object], keys: tuple[HardwareKey, ...], prefix: str = ""
) -> dict[str, object]:
    """The file of a user that was written for version 1."""
    late = {key.path for key in keys if key.since > 1}
    kept = dict[str, object]()
    for name, value in content.items():
        path = f"{prefix}{name}"
        inner = without_late_keys(value, keys, f"{path}.") if isinstance(value, dict) else value
        if path not in late and inner != {}:
            kept[name] = inner
    return kept


def test_a_file_of_version_1_stays_valid():
    old = without_late_keys(default_content(), hardware_keys())
    assert from_values(old, "old.yaml", Topology).values() == default_content()


def test_a_late_section_without_a_default_makes_old_files_invalid():
    content = without_late_keys(
        {"count": 1, "late": {"port_ns": 0.0}}, hardware_keys(BoardWithLateSection)
    )
    assert content == {"count": 1}
    with pytest.raises(ConfigError, match="late: this key is missing"):
        from_values(content, "old.yaml", BoardWithLateSection)


def test_shipped_values_are_those_of_the_file_and_of_the_defaults():
    values = shipped_values()
    assert list(values) == list(KEYS)
    assert values["ucie.bw_gbs"] == 128
    assert values["impl.pe_gemm"] == "pe_gemm"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        (0.01, "0.01"),
        (1048576, "1048576"),
        ("macs", "macs"),
        ((5.0, 9.0), "(5, 9)"),
        (((1.0, 1.5), (3.0, 1.0)), "(1, 1.5), (3, 1)"),
        (("NW", "SE"), "NW, SE"),
    ],
)
def test_a_value_is_shown_as_in_tables(value: object, text: str):
    assert value_text(value) == text


@pytest.mark.parametrize(
    ("draw", "text"),
    [
        (Scaled(), "half of the value to twice it"),
        (Scaled(zero_to=50), "half of the value to twice it, 0 to 50 where it is 0 or null"),
        (among(None, 1), "one of null, 1"),
        (among(["NW"], ["SE", "NE"]), "one of [NW], [SE, NE]"),
        (Fixed("a reason"), "not drawn: a reason"),
    ],
)
def test_a_range_describes_itself(draw: object, text: str):
    assert str(draw) == text
