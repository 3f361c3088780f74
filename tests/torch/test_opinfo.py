"""PyTorch's own database of operators, OpInfo: the results and gradients of each operator on the
device are those of the CPU, and no call ends the run.
"""

import re

import pytest

from tests.torch.conftest import Runs

pytestmark = [pytest.mark.nightly, pytest.mark.multiproc, pytest.mark.timeout(900)]

SAMPLES = 2
"""Samples of each operator: the first one and another one."""
SHARES = 2
"""The operators are divided, so that two processes test them."""
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
REFUSALS = ("no result on a CPU: ", "no sample", "NotImplementedError: Could not run 'aten::")


@pytest.mark.parametrize("share", range(SHARES))
def test_every_operator_of_pytorch_has_the_results_of_a_cpu_and_ends_no_run(share: int, run: Runs):
    options = ("--procs", "1", "--no-trace", "--timeout", "300")
    output = run("opinfo.py", *options, program_arguments=[str(SAMPLES), f"{share}/{SHARES}"])
    outcomes = dict(re.findall(r"^= (.*?) \| (.*) \| .*$", output, re.MULTILINE))
    assert len(outcomes) > 600 // SHARES
    others = {name: text for name, text in outcomes.items() if text != "ok"}
    wrong = {name: text for name, text in others.items() if name not in REFUSED}
    assert wrong == {}
    assert all(text.startswith(REFUSALS) for text in others.values()), others
