"""A selection by a mask of integers is exact, in every mode: its mask is computed by the check."""

import pytest

from kernbench.explain.check.findings import Findings
from runtime import DPPolicy, tl, torch
from runtime.language.value import Pointer
from tests.support.checked import findings
from tests.support.masked_kernels import COUNT, DEFINED, MASKED
from tests.support.undefined_kernels import ON_ONE, launch, tensor


def of_program(name: str, right: int, *, data: bool) -> Findings:
    def main(_rank: int) -> None:
        MASKED[name](right)
        torch.ahbm.synchronize()

    return findings(main, data=data)


@pytest.mark.parametrize("data", [True, False], ids=["data", "no data"])
@pytest.mark.parametrize("name", MASKED)
def test_selected_undefined_elements_are_reported_and_padding_is_not(name: str, data: bool) -> None:
    wrong, right = (of_program(name, each, data=data) for each in (0, 1))
    assert len(wrong.undefined) == 1
    assert (right.reports, right.notes) == (0, ())


@pytest.mark.parametrize("fold", ["0", "1"])
@pytest.mark.parametrize(("count", "reports"), [(DEFINED, 0), (DEFINED + 1, 1)])
def test_masks_of_repeated_launches_are_those_of_each_pe(
    fold: str, count: int, reports: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KERNBENCH_FOLD", fold)
    rows = DPPolicy(pe="row_wise", num_cubes=1, num_pes=4)

    def write(x: Pointer) -> None:
        # All parts but the last one are whole.
        defined = COUNT if tl.program_id(0) < 3 else DEFINED
        tl.store(x + tl.program_id(0) * COUNT, tl.full(defined, 1.0, tl.float32))

    def scale(x: Pointer, y: Pointer, end: int, factor: float) -> None:
        first = tl.program_id(0) * COUNT
        mask = tl.arange(0, COUNT) + first < end
        own = tl.where(mask, tl.load(x + first, COUNT), 0.0)
        tl.store(y + first, own * factor)

    def program(_rank: int) -> None:
        x, y = torch.empty(4 * COUNT, dp=rows), torch.zeros(4 * COUNT, dp=rows)
        torch.launch("write", write, x)
        for step in range(6):
            torch.launch("scale", scale, x, y, 3 * COUNT + count, 0.5 + step)
            torch.ahbm.synchronize()

    result = findings(program)
    assert (len(result.undefined), len(result.notes)) == (reports, 0)
    assert [each.uses for each in result.undefined] == [6] * reports


def test_a_selection_by_loaded_elements_is_a_note() -> None:
    def program(_rank: int) -> None:
        def kernel(x: Pointer, y: Pointer) -> None:
            mask = tl.load(y, COUNT) > 0
            tl.store(y, tl.where(mask, tl.load(x, COUNT), 0.0) + 1)

        launch(kernel, torch.empty(COUNT, dp=ON_ONE), tensor(1))
        torch.ahbm.synchronize()

    result = findings(program)
    assert (result.reports, len(result.notes)) == (0, 1)
