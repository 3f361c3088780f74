"""Programs that use what nothing has written are reported, and their right twins are not."""

from collections.abc import Callable

import pytest

from kernbench.explain.check.findings import Findings
from runtime import tl, torch
from runtime.language.value import Pointer
from tests.support.checked import findings
from tests.support.joined import ccl_text
from tests.support.undefined_kernels import COUNT, ON_ONE, PROGRAMS, increment, launch, tensor

ONE_PAIR = ccl_text("tests.support.joined.pair_0_0_0_1")


def run(program: Callable[[int], None], right: int) -> Callable[[int], None]:
    def main(_rank: int) -> None:
        torch.distributed.init_process_group("ahbm")
        program(right)
        torch.ahbm.synchronize()

    return main


def of_program(name: str, right: int, **options: bool) -> Findings:
    if name.endswith("of_two"):
        return findings(run(PROGRAMS[name], right), 2, **options)
    return findings(run(PROGRAMS[name], right), ccl=ONE_PAIR, **options)


@pytest.mark.parametrize("name", PROGRAMS)
def test_an_undefined_value_is_reported_and_the_right_twin_is_not(name: str) -> None:
    wrong = of_program(name, 0)
    assert wrong.undefined, "the use is not reported"
    assert not wrong.races
    assert of_program(name, 1).reports == 0


@pytest.mark.parametrize("name", [each for each in PROGRAMS if each != "the_index_of_a_gather"])
def test_undefined_values_are_found_without_data(name: str) -> None:
    assert of_program(name, 0, data=False).undefined
    assert of_program(name, 1, data=False).reports == 0


def test_a_report_names_the_element_the_creation_the_first_read_and_the_use() -> None:
    def program(_right: int) -> None:
        x, y = torch.empty(COUNT, dp=ON_ONE), tensor(1)

        def copy_behind(p: Pointer, q: Pointer) -> None:
            tl.store(p, tl.full(40, 1.0, tl.float32))
            tl.store(q, tl.load(p, COUNT))

        launch(copy_behind, x, y)
        launch(increment, y, tensor(1))

    [report] = findings(run(program, 0), ccl=ONE_PAIR).undefined
    assert (report.tensor, report.element) == ("t1[64]", 40)
    assert report.made.startswith("tests/races/test_undefined_values.py:")
    assert report.read is not None
    assert (report.read.operation, report.use.operation) == ("load", "math add")
    assert report.use.kernel == "increment"
    assert report.read.end_ps < report.use.begin_ps
