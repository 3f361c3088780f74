"""`kernbench check` refuses what it cannot check."""

from pathlib import Path

import pytest

from kernbench.cli.main import main
from tests.support.hand_made_runs import one_kernel
from tests.support.run_tables import write_run


def test_records_of_a_version_without_calls_are_refused_and_not_clean(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = write_run(tmp_path / "run", [one_kernel()], 1000)
    assert main(["check", str(run)]) == 2
    assert f"{run} has no table of calls" in capsys.readouterr().err
