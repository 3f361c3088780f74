"""Programs that use what nothing has written are reported, and their right twins are not."""

from collections.abc import Callable

import pytest

from kernbench.explain.check.findings import Findings
from runtime import DPPolicy, tl, torch
from runtime.core.run_tables import CALLS
from runtime.device.memory.stored_tensor import StoredTensor
from runtime.device.rank.rank_state import running_rank
from runtime.language.value import Pointer
from tests.support.checked import CUBE, checked, findings
from tests.support.joined import ccl_text
from tests.support.recorded_programs import rows_of
from tests.support.undefined_kernels import COUNT, ON_ONE, PROGRAMS, increment, launch, tensor
from tests.support.world import simulate

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


def test_a_copy_to_the_host_has_elements_of_the_tensor_and_not_bytes() -> None:
    def program(_right: int) -> None:
        x = torch.empty(COUNT, dp=ON_ONE)

        def start(p: Pointer) -> None:
            tl.store(p, tl.full(40, 1.0, tl.float32))

        launch(start, x)
        x.numpy()

    [report] = findings(run(program, 0), ccl=ONE_PAIR).undefined
    assert (report.tensor, report.element, report.use.operation) == ("t1[64]", 40, "copy")


@pytest.mark.parametrize("is_new", [True, False], ids=["new memory", "memory of a dead tensor"])
def test_barriers_sum_zeros(*, is_new: bool) -> None:
    def program(_rank: int) -> list[float]:
        torch.distributed.init_process_group("ahbm")
        x = torch.full((1,), 3.0, dp=DPPolicy(num_cubes=1, num_pes=1))
        if not is_new:
            del x
        for _ in range(2):
            torch.distributed.barrier()
        group = running_rank().process_group
        assert group is not None
        [summed] = [each.barrier for each in group.tables.values() if each.barrier is not None]
        assert isinstance(summed, StoredTensor)
        return summed[...].tolist()

    world = simulate(program, 2, topology=CUBE, record=True)
    assert world.returned == {0: [0.0], 1: [0.0]}
    assert checked(world, is_strict=True).reports == 0
    zeros = [each for each in rows_of(world, 0, CALLS) if each["operation"] == "zeros"]
    assert len(zeros) == is_new
