"""Steps of an optimiser, whose numbers change, are repeated, with the records of simulated ones."""

import json
from pathlib import Path
from typing import Any

import pytest

from runtime.core.compiled.choice import IS_COMPILED
from runtime.wire.environment import FOLD
from tests.torch.conftest import Runs

pytestmark = [
    *(pytest.mark.slow, pytest.mark.multiproc, pytest.mark.timeout(300)),
    pytest.mark.skipif(not IS_COMPILED, reason="launches are repeated by the core in C"),
]
STEPS = 8


def files(out: Path) -> dict[str, bytes]:
    """The records of a run by file; that of the run itself has wall-clock times."""
    return {
        each.relative_to(out).as_posix(): each.read_bytes()
        for each in sorted(out.rglob("*"))
        if each.is_file() and each.name != "run.json"
    }


def kernels(out: Path) -> tuple[int, ...]:
    """The kernels of a run, and those that were repeated."""
    run: Any = json.loads((out / "run.json").read_text())
    processes = run["lps"]
    return tuple(sum(each[name] for each in processes) for name in ("kernels", "repeated_kernels"))


@pytest.mark.parametrize("implementation", ["foreach", "fused"])
def test_later_steps_are_repeated(run: Runs, tmp_path: Path, implementation: str) -> None:
    for fold in ("0", "1"):
        arguments = (implementation,)
        run("optimizer_steps.py", program_arguments=arguments, out=tmp_path / fold, **{FOLD: fold})
    assert files(tmp_path / "0") == files(tmp_path / "1")
    assert kernels(tmp_path / "0")[1] == 0
    count, repeated = kernels(tmp_path / "1")
    # The first steps with a place of the answers are simulated.
    assert repeated > count * (STEPS - 5) / STEPS
