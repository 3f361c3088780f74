"""Reading `topology.yaml`: values, overrides, and every rule with its error."""

from pathlib import Path
from typing import Any

import pytest

from runtime.core.errors import ConfigError
from runtime.model.schema.topology_schema import VERSION
from runtime.model.topology import load_topology, parse_topology
from tests.support.random_topologies import as_text, default_content
from tests.support.topologies import SOURCE, default_text, variant, variant_text


def complaint(sips: int | None = None, **changes: Any) -> str:
    with pytest.raises(ConfigError) as raised:
        parse_topology(variant_text(**changes), SOURCE, sips)
    message = str(raised.value)
    assert "\n" not in message
    return message.removeprefix(f"{SOURCE}: ")


def test_the_default_file_describes_two_sips_of_16_cubes_with_8_pes() -> None:
    topology = load_topology()
    assert (topology.sips, topology.cubes, topology.pes_per_cube) == (2, 16, 8)
    assert topology.hbm_slice_bytes == 6 << 30
    scratch_bytes = (
        topology.kernel_scratch_bytes
        + topology.collective_scratch_bytes
        + topology.transfer_scratch_bytes
    )
    assert topology.tcm_bytes - topology.scheduler_reserved_bytes - scratch_bytes == 9 << 20


def test_the_command_line_overrides_the_sip_count() -> None:
    assert load_topology(None, 64).sips == 64
    assert parse_topology(default_text(), SOURCE, 3).sips == 3


def test_errors_name_the_file_that_was_read(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(variant_text(packet_bytes=0))
    with pytest.raises(ConfigError, match=r"mine\.yaml: packet_bytes: should be greater than"):
        load_topology(path)


@pytest.mark.parametrize("mesh", [{"w": 1, "h": 1}, {"w": 2, "h": 3}, {"w": 8, "h": 4}])
def test_any_cube_mesh_of_up_to_32_cubes_is_accepted(mesh: dict[str, int]) -> None:
    assert variant(sip__cube_mesh=mesh).cubes == mesh["w"] * mesh["h"]


def test_one_pe_in_one_corner_is_a_cube() -> None:
    layout = {"pe_per_corner": 1, "corners": ["NE"], "pos_mm": {"NE": [[11.0, 1.0]]}}
    assert variant(cube__pe_layout=layout).pes_per_cube == 1


def test_a_sip_grid_is_square_unless_the_file_has_columns_and_rows() -> None:
    assert variant(system__sips__topology="torus_2d", system__sips__count=9).sip_grid == (3, 3)
    sips = {
        "topology": "mesh_2d_no_wrap",
        "count": 6,
        "w": 3,
        "h": 2,
        "fabric": "direct",
        "spacing_mm": 20,
    }
    assert variant(system__sips=sips).sip_grid == (3, 2)
    assert variant(system__sips__count=5).sip_grid == (5, 1)


def test_a_file_without_a_version_is_the_same_machine() -> None:
    content = default_content()
    del content["version"]
    assert parse_topology(as_text(content), SOURCE) == load_topology()


def test_a_file_of_a_newer_version_is_refused_before_its_unknown_keys() -> None:
    assert complaint(version=VERSION + 1, ucie__lanes=16, pe__dma__channels=0) == (
        f"version: {VERSION + 1} is newer than {VERSION}, the newest version that this kernbench "
        "reads"
    )
    assert complaint(version=0).startswith("version: should be greater than or equal to 1")
    assert complaint(version="2").startswith("version: should be a valid integer, got '2'")


def test_a_topology_cannot_be_changed_after_it_was_read() -> None:
    with pytest.raises(AttributeError, match="immutable"):
        load_topology().cube.noc.rows = 3  # type: ignore[misc]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"system__sips__cuont": 3}, "system.sips.cuont: unknown key; did you mean 'count'?"),
        ({"sip__host": {"overhead_ns": 0}}, "sip.host: unknown key; 'host' is a key of the top"),
        ({"host__launch_ns": 5}, "host.launch_ns: unknown key; did you mean 'launch_overhead_ns'?"),
        ({"host__copy_overhead_ns": -1}, "host.copy_overhead_ns: should be greater than or equal"),
        ({"host__copy_overhead_ns": "5"}, "host.copy_overhead_ns: should be a valid number"),
        ({"host": None}, "host: should be a mapping of keys, got null"),
        ({"system__sips__count": 0}, "system.sips.count: 0 SIPs; an address names 1 to 1024"),
        ({"system__sips__count": 1025}, "system.sips.count: 1025 SIPs; an address names 1 to 1024"),
        (
            {"system__sips__topology": "torus_2d", "system__sips__count": 6},
            "system.sips.count: torus_2d of 6 SIPs",
        ),
        (
            {"system__sips__topology": "mesh_2d", "system__sips__w": 2},
            "system.sips.h: w and h are given together",
        ),
        (
            {"system__sips__topology": "mesh_2d", "system__sips__w": 2, "system__sips__h": 3},
            "system.sips.w: 2 columns x 3 rows are 6 SIPs, count is 2",
        ),
        (
            {"system__sips__w": 2, "system__sips__h": 1},
            "system.sips.w: a ring has no columns and rows",
        ),
        (
            {"system__sips__topology": "star"},
            "system.sips.topology: should be 'ring_1d', 'torus_2d'",
        ),
        (
            {"ucie__overhead_ns": 0, "system__sips__spacing_mm": 0},
            "ucie.overhead_ns: a crossing between SIPs takes 0",
        ),
        (
            {"ucie__overhead_ns": -1},
            "ucie.overhead_ns: should be greater than or equal to 0, got -1",
        ),
        ({"ucie__bw_gbs": 0}, "ucie.bw_gbs: should be greater than or equal to 0.001, got 0"),
        ({"ucie": None}, "ucie: should be a mapping of keys, got null"),
        (
            {"sip__cube_mesh": {"w": 11, "h": 3}},
            "sip.cube_mesh: 11 x 3 = 33 cubes; an address names 32",
        ),
        (
            {"sip__io_chiplet__edge": "X"},
            "sip.io_chiplet.edge: should be 'N', 'E', 'S' or 'W', got 'X'",
        ),
        (
            {"cube__pe_layout__pe_per_corner": 3},
            "cube.pe_layout.pos_mm.NW: 2 positions for 3 PEs (and 3 more)",
        ),
        (
            {"cube__pe_layout__pe_per_corner": 0},
            "cube.pe_layout.pe_per_corner: should be greater than or equal to 1",
        ),
        (
            {"cube__pe_layout__corners": ["NW", "NW"]},
            "cube.pe_layout.corners: a corner is named twice: NW, NW",
        ),
        ({"cube__pe_layout__corners": []}, "cube.pe_layout.corners: "),
        (
            {"cube__pe_layout__pos_mm__SE": [[11.0, 13.0], [1, 1]]},
            "cube.pe_layout.pos_mm.SE[0]: (11.0, 13.0) mm is out",
        ),
        (
            {"cube__pe_layout__pos_mm__SE": [[11.0], [1, 1]]},
            "cube.pe_layout.pos_mm.SE[0][1]: this key is missing",
        ),
        (
            {"cube__ucie_pos_mm__E": [12.1, 6]},
            "cube.ucie_pos_mm.E: (12.1, 6.0) mm is outside the cube of 12.0 x 12.0",
        ),
        ({"cube__m_cpu__pos_mm": [1, 12.5]}, "cube.m_cpu.pos_mm: (1.0, 12.5) mm is outside"),
        ({"cube__sram__pos_mm": [12.5, 1]}, "cube.sram.pos_mm: (12.5, 1.0) mm is outside"),
        ({"cube__noc__hbm_hole_mm": [8, 4, 4, 8]}, "cube.noc.hbm_hole_mm: x0, y0, x1, y1"),
        (
            {"cube__noc__hbm_hole_mm": [4, 4, 8, 13]},
            "cube.noc.hbm_hole_mm: the hole ends at (8.0, 13.0) mm",
        ),
        (
            {"cube__noc__hbm_hole_mm": [4, 0, 8, 12]},
            "cube.noc.hbm_hole_mm: the hole removes all routers of the 6 x 6",
        ),
        (
            {"cube__noc__hbm_hole_mm": [0, 0, 12, 12]},
            "cube.noc.hbm_hole_mm: the hole removes all routers of the 6 x 6",
        ),
        (
            {"hbm__slice_gib": 17},
            "hbm.slice_gib: 8 slices of 17 GiB a cube; the HBM window of an address has 128 GiB",
        ),
        ({"hbm__burst_bytes": 96}, "hbm.burst_bytes: 96 is not a power of two"),
        (
            {"hbm__banks__row_bytes": 1000},
            "hbm.banks.row_bytes: 1000 is no multiple of hbm.burst_bytes, 256",
        ),
        (
            {"hbm__banks__t_refi_ns": 465},
            "hbm.banks.t_refi_ns: 465.0 ns are no more than t_rfc_ns + t_rcd_ns, 469.5 ns",
        ),
        ({"hbm__model": "rows"}, "hbm.model: should be 'channels' or 'banks', got 'rows'"),
        ({"hbm__num_pcs": 0}, "hbm.num_pcs: should be greater than or equal to 1"),
        (
            {"cube__hbm_ctrl__efficiency": 1.1},
            "cube.hbm_ctrl.efficiency: should be less than or equal to 1, got 1.1",
        ),
        (
            # A time of more than 64 bits would end the run at its first message to another process.
            {"cube__hbm_ctrl__efficiency": 1e-30},
            "cube.hbm_ctrl.efficiency: should be greater than or equal to 0.001, got 1e-30",
        ),
        (
            {"pe__tcm_mb": 7},
            (
                "pe.tcm_mb: 7 MiB; scheduler_reserved_mb 4 + kernel_scratch_mb 1 + "
                "collective_scratch_mb 1 + transfer_scratch_mb 1 leave nothing"
            ),
        ),
        ({"pe__tcm_mb": 129}, "pe.tcm_mb: 129 MiB; an address reaches 128 MiB"),
        ({"cube__sram_mb": 16385}, "cube.sram_mb: 16385 MiB; an address reaches 16384 MiB"),
        ({"pe__tile__m": 0}, "pe.tile.m: should be greater than or equal to 1, got 0"),
        (
            {"pe__tile__k": 128},
            (
                "pe.tile: m 32, k 128, n 32: two of each operand and two of the result, "
                "of 4 B elements, need 74,240 B of reg"
            ),
        ),
        (
            {"pe__gemm__model": "systolic"},
            "pe.gemm.model: should be 'macs' or 'systolic_os', got 'systolic'",
        ),
        ({"pe__gemm__rows": 0}, "pe.gemm.rows: should be greater than or equal to 1, got 0"),
        (
            {"pe__gemm__macs_per_cycle": 0},
            "pe.gemm.macs_per_cycle: should be greater than or equal to 1, got 0",
        ),
        (
            {"pe__scheduler__tile_buffers": 0},
            "pe.scheduler.tile_buffers: should be greater than or equal to 1, got 0",
        ),
        (
            {"pe__tcm__scheduler_reserved_mb": 0},
            (
                "pe.scheduler.tile_buffers: 6 tiles of each operand and of the result, "
                "of 4 B elements, need 122,880 B; sched"
            ),
        ),
        ({"control_bytes": 8192}, "control_bytes: 8192 is more than packet_bytes, 4096"),
        ({"impl__srma": "sram"}, "impl.srma: unknown key; did you mean 'sram'?"),
        ({"impl__sram": "a b"}, "impl.sram: "),
        ({"impl__sram": "my.module"}, "impl.sram: "),
    ],
)
def test_an_impossible_topology_is_one_line_that_names_the_key(
    changes: dict[str, Any], message: str
) -> None:
    assert complaint(**changes).startswith(message)


def test_more_than_64_pes_do_not_fit_an_address() -> None:
    positions = [[1.0, 1.0]] * 17
    layout = {"pe_per_corner": 17, "corners": ["NW", "NE", "SW", "SE"]}
    layout["pos_mm"] = dict.fromkeys(layout["corners"], positions)
    message = complaint(cube__pe_layout=layout, hbm__slice_gib=1)
    assert message == "cube.pe_layout.pe_per_corner: 68 PEs a cube; an address names 64"


def test_an_overridden_count_must_fit_the_grid_of_the_file() -> None:
    message = complaint(sips=5, system__sips__topology="mesh_2d", system__sips__count=4)
    assert message.startswith(
        "system.sips.count: mesh_2d of 5 SIPs: give w and h, or a square count"
    )


def test_one_sip_needs_no_crossing_time() -> None:
    assert variant(system__sips__count=1, ucie__overhead_ns=0, system__sips__spacing_mm=0).sips == 1
