"""A report that fails is a warning: the result, the digest and the exit code of the run stay."""

from pathlib import Path

import pytest

import coordinator.report.run_directory
import kernbench.command.simulation
import kernbench.explain.why.summary
from coordinator.report import trace_events
from kernbench.cli.main import main

pytestmark = [pytest.mark.slow, pytest.mark.multiproc, pytest.mark.usefixtures("warm")]
PLANTED = "ZeroDivisionError: planted; the result of the run is not affected\n"
EVENT_AT_THE_END = """
from kernbench import torch
x = torch.zeros(1 << 17)
torch.ahbm.synchronize()
event = torch.ahbm.Event()
event.record()
event.synchronize()
print(torch.ahbm.now_ns())
"""


def fault(*_: object) -> None:
    raise ZeroDivisionError("planted\nwith a second line")


@pytest.mark.parametrize(
    ("owner", "name", "report"),
    [
        (kernbench.explain.why.summary, "rank_time", "explanation of the time"),
        (kernbench.command.simulation, "pass_line", "table of the results"),
        (trace_events.TraceThreads, "ranges", "op log and trace (oplog.jsonl, trace.json)"),
        (coordinator.report.run_directory, "write_records", "records (records/)"),
    ],
)
def test_a_report_that_fails_leaves_the_result(
    owner: object,
    name: str,
    report: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(owner, name, fault)
    out = tmp_path / "run"
    assert main(["--sips", "1", "--max-bytes", "256", "--out", str(out)]) == 0
    printed = capfd.readouterr()
    assert printed.err == f"kernbench: warning: no {report}: {PLANTED}"
    assert "\ndigest          " in printed.out
    assert '"passed": true' in (out / "run.json").read_text()


def test_a_script_that_ends_on_an_event_lasts_until_its_answer(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "ends_on_an_event.py"
    script.write_text(EVENT_AT_THE_END)
    assert main(["--sips", "1", "--out", str(tmp_path / "run"), str(script)]) == 0
    lines = capfd.readouterr().out.splitlines()
    # What the program reads from the clock of the device, in its last statement.
    [ended_ns] = [line for line in lines if line.replace(".", "").isdecimal()]
    assert f"simulated time  {float(ended_ns):,.3f} ns" in lines
