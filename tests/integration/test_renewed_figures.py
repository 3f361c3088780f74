"""The figures of the documentation are drawn from committed files, the same bytes every time."""

from pathlib import Path
from typing import Any

import pytest

from kernbench.studies.catalogue import STUDIES as FLAGS
from kernbench.studies.catalogue import study_class
from kernbench.studies.parameter_study import ParameterStudy
from tests import renew_figures
from tests.support import product_picture
from tests.support.runs import ROOT
from tests.support.sip_picture import PICTURE

FIGURES = ROOT / "docs/figures"
STUDIES = [study_class(flags)(flags()) for flags in FLAGS]
LARGEST_BYTES = 150_000
"""The most bytes of a committed picture: pages with figures stay quick to load."""


def test_every_picture_of_the_directory_is_drawn_and_every_drawn_picture_is_committed():
    drawn = {
        (FIGURES / study.results_name).parent / name
        for study in STUDIES
        for name in study.figures()
    }
    # The test of `kernbench.sweep.figures` has those of sweeps.
    committed = set(FIGURES.rglob("*.png")) - set((FIGURES / "sweeps").iterdir())
    others = {FIGURES / PICTURE, FIGURES / product_picture.PICTURE}
    assert drawn | others == committed


@pytest.mark.parametrize("study", STUDIES, ids=lambda study: study.results_name)
def test_the_committed_results_are_complete_and_without_faults(
    study: ParameterStudy[Any, Any, Any],
):
    results = study.read(FIGURES / study.results_name)
    assert study.verdict(results) == [study.passed(results)]


@pytest.mark.slow
def test_a_picture_is_the_same_bytes_every_time(tmp_path: Path):
    first, second = (next(renew_figures.draw_all(tmp_path)).read_bytes() for _ in range(2))
    assert first == second


def test_every_committed_picture_is_small():
    sizes = {path.name: path.stat().st_size for path in FIGURES.rglob("*.png")}
    assert [name for name, nbytes in sizes.items() if nbytes > LARGEST_BYTES] == []


@pytest.mark.slow
def test_a_missing_results_file_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr("sys.argv", ["figures", str(tmp_path)])
    assert renew_figures.main() == 2
    assert "torch_products.json cannot be read: No such file" in capsys.readouterr().err


def test_without_a_directory_the_usage_is_printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr("sys.argv", ["figures"])
    assert renew_figures.main() == 2
    assert capsys.readouterr().err == "usage: python -m tests.renew_figures DIRECTORY\n"
