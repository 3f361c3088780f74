"""A worker of torchrun: whether and with what it takes part in a run."""

import pytest

from kernbench.cli.torchrun_run import options_of_run


def test_the_variable_has_the_options_of_the_run():
    assert options_of_run({"KERNBENCH_RUN": "run --topology 'my file.yaml'"}) == [
        "--topology",
        "my file.yaml",
    ]
    assert options_of_run({"KERNBENCH_RUN": "run"}) == []


@pytest.mark.parametrize("text", ["perf all_reduce", "run 'open", "--topology x"])
def test_a_worker_that_cannot_take_part_ends_with_the_reason(text: str):
    with pytest.raises(SystemExit, match="expected 'run', or 'run' with options"):
        options_of_run({"KERNBENCH_RUN": text})
