"""The command `web`: what it writes, and its errors."""

from pathlib import Path

import pytest

from kernbench.cli.main import call
from runtime.core.errors import UsageError
from tests.support.run_tables import program, tables, write_run
from tests.support.topologies import variant_text


@pytest.mark.slow
def test_the_page_of_a_topology_is_written_with_its_size(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, page = tmp_path / "machine.yaml", tmp_path / "page.html"
    file.write_text(variant_text(sip__cube_mesh={"w": 1, "h": 1}))
    assert call(["web", "--topology", str(file), "--sips", "3", "--out", str(page)]) == 0
    assert "3 SIPs x 1 cube x 8 PEs = 24 PEs" in page.read_text()
    assert capsys.readouterr().out == f"{page}: {page.stat().st_size:,} B\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "expected the directory of a run, or --topology FILE"),
        (["run", "--topology", "t.yaml"], "shows a machine without a run, and run is given too"),
        (["run", "--sips", "2"], "--sips belongs to --topology"),
        (["--topology", "t.yaml", "--sips", "0"], "expected an integer of at least 1, got '0'"),
        (["--topology", "missing.yaml"], "missing.yaml"),
    ],
)
def test_wrong_arguments_are_one_line(arguments: list[str], message: str) -> None:
    with pytest.raises(Exception, match=message):
        call(["web", *arguments])


def test_without_bokeh_the_command_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kernbench.cli.web.find_spec", lambda _: None)
    with pytest.raises(UsageError, match=r"pip install 'kernbench\[web\]'"):
        call(["web", "--topology", "topology.yaml"])


@pytest.mark.slow
def test_a_run_without_time_has_no_page(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", [tables(programs=[program(0, 0, 0)])], 0)
    with pytest.raises(UsageError, match="has taken no simulated time"):
        call(["web", str(run)])
    assert not (run / "web.html").exists()
