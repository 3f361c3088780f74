"""The study of closed forms: its points, its measurement, its lines and refused flags."""

import pytest
from msgspec.structs import replace

from kernbench.oracle.theory.collectives.collective_forms import FORMS
from kernbench.studies.catalogue import FormFlags
from kernbench.studies.collective_forms.study import (
    FormPoint,
    FormStudy,
    large_ratios,
    plan_points,
)
from runtime.core.config.config_file import default_file, read_text
from runtime.core.errors import UsageError
from tests.support.form_rows import results, row
from tests.support.topologies import variant_text

SMALL = variant_text(
    sip__cube_mesh={"w": 1, "h": 1},
    cube__pe_layout__pe_per_corner=1,
    cube__pe_layout__corners=["NW", "SE"],
)


def points(
    ranks: str = "2,3", max_bytes: int = 1 << 16, all_pes_bytes: int = 0
) -> tuple[FormPoint, ...]:
    flags = FormFlags(ranks=ranks, max_bytes=max_bytes, all_pes_bytes=all_pes_bytes)
    return plan_points(SMALL, read_text(default_file("ccl.yaml")), flags)


def test_every_collective_has_every_number_of_ranks_and_size() -> None:
    found = [(each.collective, each.ranks, each.nbytes) for each in points(max_bytes=1 << 20)]
    sizes = (1 << 16, 1 << 18, 1 << 20)
    assert found == [(name, ranks, n) for name in FORMS for ranks in (2, 3) for n in sizes]


def test_two_collectives_run_on_all_pes_too() -> None:
    found = {each.collective for each in points(all_pes_bytes=1 << 18) if each.pes == 2}
    assert found == {"all_reduce", "all_to_all_single"}


def test_the_larger_tensor_has_the_size_in_whole_elements_of_every_part() -> None:
    for point in points("3", all_pes_bytes=1 << 18):
        size_bytes = point.call.case.size_bytes
        parts = 3 if "_t" in point.collective else 1
        assert size_bytes % (2 * parts * point.pes) == 0
        assert point.nbytes - 2 * parts * point.pes < size_bytes <= point.nbytes


def test_a_chain_is_right_and_within_its_form_but_for_the_first_load_and_the_last_store() -> None:
    point = next(each for each in points("2") if each.collective == "broadcast")
    row = FormStudy().measure(point)
    assert (row.pes, row.ranks, row.wrong, row.skew_ps, row.faults) == (1, 2, 0, 0, [])
    assert 1 < row.ratio < 1.5


def test_a_large_tensor_is_measured_without_data() -> None:
    [point] = [each for each in points("2", 1 << 20) if str(each).startswith("broadcast")][-1:]
    assert FormStudy().measure(point).wrong is None


def test_a_large_collective_beyond_the_limit_is_a_fault() -> None:
    assert row("reduce", 1, 2, 1 << 20, 1.15).faults == []
    assert row("reduce", 1, 2, 1 << 16, 1.4).faults == []
    assert row("reduce", 1, 2, 1 << 20, 1.16).faults == [
        "1.16 times the closed form, more than 1.15"
    ]


@pytest.mark.parametrize(
    ("flags", "text"),
    [
        ({"ranks": "1,2"}, "--ranks '1,2': expected rising numbers from 2 to 64"),
        ({"ranks": "2,65"}, "--ranks '2,65': expected rising numbers from 2 to 64"),
        ({"ranks": "4,2"}, "expected rising numbers"),
        ({"max_bytes": 1000}, "--max-bytes 1000: must be from 65536 to 1073741824"),
        ({"all_pes_bytes": -1}, "--all-pes-bytes -1: must be from 262144 to 1073741824"),
    ],
    ids=["one rank", "many ranks", "falling", "small", "negative"],
)
def test_wrong_flags_are_refused(flags: dict[str, object], text: str) -> None:
    with pytest.raises(UsageError, match=text):
        points(**flags)  # pyright: ignore[reportArgumentType] - by name


def test_ratios_are_those_of_large_tensors() -> None:
    found = large_ratios(results().rows)
    assert {key: [round(each, 6) for each in ratios] for key, ratios in found.items()} == {
        ("all_reduce", "one PE"): [1.1, 1.1],
        ("all_reduce", "all PEs"): [1.05],
    }


def test_a_file_with_another_collective_is_refused() -> None:
    file, study = results(), FormStudy(FormFlags(ranks="2", max_bytes=1 << 16, all_pes_bytes=0))
    assert study.problem(file) == ""
    other = replace(file.rows[0], collective="scan")
    assert study.problem(replace(file, rows=(other,))) == "no form of scan"
