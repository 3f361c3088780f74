"""PyTorch's own database of operators, OpInfo: the results and gradients of each operator on the
device are those of the CPU, and no call ends the run.
"""

import pytest

from tests.torch import coverage_table, operator_table
from tests.torch.conftest import Runs
from tests.torch.operator_table import LINE, REFUSAL, SAMPLES, SHARES

pytestmark = [pytest.mark.nightly, pytest.mark.multiproc, pytest.mark.timeout(1800)]

SPARSE = "sparse tensors, which the device lacks: the error names the operator"
REFUSED = {
    "sparse.sampled_addmm": SPARSE,
    "sparse.mm (reduce)": SPARSE,
    "to_sparse": SPARSE,
    **dict.fromkeys(
        (
            *("jiterator_unary", "jiterator_binary", "jiterator_4inputs_with_extra_args"),
            *("jiterator_binary_return_by_ref", "jiterator_2inputs_2outputs"),
        ),
        "compiled for CUDA alone: no result on a CPU",
    ),
    **dict.fromkeys(
        (
            *(
                "torch._scaled_mm",
                "torch._scaled_mm_v2",
                "nn.functional.batch_norm (without_cudnn)",
            ),
            "torch.ops.aten._flash_attention_forward",
            "torch.ops.aten._efficient_attention_forward",
        ),
        "no type on a CPU: no sample",
    ),
    "as_strided (partial_views)": "a sample of views that its copies have not: no result on a CPU",
}
"""Operators without a comparison, with the reason."""


@pytest.fixture(scope="module")
def outputs(run: Runs) -> list[str]:
    return [
        run(
            "opinfo.py",
            *operator_table.OPTIONS,
            program_arguments=[str(SAMPLES), f"{share}/{SHARES}"],
        )
        for share in range(SHARES)
    ]


def test_every_operator_of_pytorch_has_the_results_of_a_cpu_and_ends_no_run(outputs: list[str]):
    outcomes = {name: text for each in outputs for name, text, *_ in LINE.findall(each)}
    assert len(outcomes) > 600
    others = {name: text for name, text in outcomes.items() if text != "ok"}
    wrong = {name: text for name, text in others.items() if name not in REFUSED}
    assert wrong == {}
    assert all(REFUSAL.match(text) for text in others.values()), others


def test_the_page_of_coverage_has_the_table_of_operators(outputs: list[str]):
    rows = sorted(operator_table.rows_of("".join(outputs)), key=lambda row: row.name)
    assert operator_table.page(rows) == coverage_table.OPERATORS.read_text("utf-8")
