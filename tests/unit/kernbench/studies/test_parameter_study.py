"""The steps that all studies share, through the command line: files, lines, and refused options."""

import struct
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kernbench.cli.main import main
from kernbench.studies import results_file
from kernbench.studies.catalogue import AlgorithmFlags, CclFlags, FormFlags, GemmFlags, MoeFlags
from kernbench.studies.ccl_algorithms.study import AlgorithmStudy
from kernbench.studies.collective_forms.figures import FIGURES as FORM_FIGURES
from kernbench.studies.collective_forms.study import FormStudy
from kernbench.studies.milestone_1h_ccl.figures import FIGURES as CCL_FIGURES
from kernbench.studies.milestone_1h_ccl.study import CclStudy
from kernbench.studies.milestone_1h_gemm.figures import FIGURES as GEMM_FIGURES
from kernbench.studies.milestone_1h_gemm.study import GemmStudy
from kernbench.studies.milestone_1h_gemm.theory import ProductShape
from kernbench.studies.moe_all_to_all.figures import FIGURES as MOE_FIGURES
from kernbench.studies.moe_all_to_all.study import MoeStudy
from kernbench.studies.parameter_study import ParameterStudy
from kernbench.studies.study_results import StudyResults
from runtime.core.bench_registry import StudyOptions
from runtime.core.errors import UsageError
from tests.support import algorithm_rows, ccl_rows, form_rows, gemm_rows, moe_rows


@dataclass(frozen=True)
class StudyCase:
    """A study, earlier results, and what the command prints and writes for them.

    `wrong` makes the first row faulty, `fault` is the line for it; `files` are in the order of the
    list that the command prints; `option` is an option of the study with a value.
    """

    name: str
    study: ParameterStudy[Any, Any, Any]
    results: StudyResults[Any]
    wrong: dict[str, float]
    fault: str
    files: tuple[str, ...]
    option: tuple[str, str]

    def run(self, *arguments: str) -> int:
        return main(["--bench", self.name, *arguments])

    @property
    def file(self) -> str:
        return self.files[0]


STUDIES = (
    StudyCase(
        name="ccl-algorithms",
        study=AlgorithmStudy(AlgorithmFlags(max_bytes=1024)),
        results=algorithm_rows.results(),
        wrong={"wrong": 1},
        fault="all_reduce ring 3 ranks 2 B: 1 elements are wrong",
        files=(
            "ccl_algorithms.json",
            "ccl_algorithms.csv",
            "ccl_algorithms.png",
            "ccl_algorithms_on_grids.png",
        ),
        option=("--max-bytes", "1024"),
    ),
    StudyCase(
        name="milestone-1h-ccl",
        study=CclStudy(CclFlags(max_bytes=1024)),
        results=ccl_rows.results(),
        wrong={"wrong": 1},
        fault="ring_1d 4 ring tcm 256 B: 1 elements are wrong",
        files=("ccl_sweep.json", "ccl_summary.csv", *CCL_FIGURES),
        option=("--max-bytes", "1024"),
    ),
    StudyCase(
        name="milestone-1h-gemm",
        study=GemmStudy(GemmFlags(shapes="16x32x16")),
        results=gemm_rows.results(ProductShape(16, 32, 16), ProductShape(256, 64, 32)),
        wrong={"error": 2.0},
        fault="16x32x16 ref_ref: wrong result",
        files=("gemm_sweep.json", *GEMM_FIGURES),
        option=("--shapes", "8x8x8"),
    ),
    StudyCase(
        name="collective-forms",
        study=FormStudy(FormFlags(ranks="2", max_bytes=1 << 16, all_pes_bytes=0)),
        results=form_rows.results(),
        wrong={"wrong": 1},
        fault="all_reduce 2 ranks 1 PEs 65536 B: 1 elements are wrong",
        files=("collective_forms.json", *FORM_FIGURES),
        option=("--ranks", "2"),
    ),
    StudyCase(
        name="moe-all-to-all",
        study=MoeStudy(MoeFlags()),
        results=moe_rows.results(),
        wrong={"wrong": 1},
        fault="2 ranks, exponent 0: 1 elements are wrong",
        files=("moe_all_to_all.json", *MOE_FIGURES),
        option=("--hidden", "64"),
    ),
)


@pytest.fixture(params=STUDIES, ids=lambda case: case.name)
def case(request: pytest.FixtureRequest) -> StudyCase:
    return request.param


@pytest.fixture
def fast(case: StudyCase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with earlier results, and the environment that selects them."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MILESTONE_FAST", "1")
    results_file.write(tmp_path / case.file, case.results)
    return tmp_path


@pytest.mark.slow
def test_simulated_rows_are_written_to_a_new_directory_and_read_again(tmp_path: Path):
    study, file = GemmStudy(GemmFlags(shapes="8x8x8")), tmp_path / "new" / "gemm_sweep.json"
    results, lost = study.simulate(StudyOptions(procs=1), file)
    assert lost == ()
    assert [row.label for row in results.rows] == [
        "8x8x8 ref_ref",
        "8x8x8 load_ref",
        "8x8x8 load_load",
    ]
    assert results.topology == "topology.yaml"
    assert study.read(file) == results


def test_nothing_is_simulated_if_nothing_can_be_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    (tmp_path / "taken").touch()
    with pytest.raises(UsageError, match=r"^--out: cannot write to .*/taken: File exists$"):
        GemmStudy(GemmFlags(shapes="8x8x8")).simulate(
            StudyOptions(procs=1), tmp_path / "taken" / "sweep.json"
        )
    # The progress has a line for each simulation.
    assert capsys.readouterr().err == ""


def test_an_invalid_topology_file_is_refused_before_points_read_it(
    case: StudyCase, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    (tmp_path / "empty.yaml").write_text("colour: blue\n")
    assert case.run("--topology", str(tmp_path / "empty.yaml"), "--out", str(tmp_path)) == 2
    assert "empty.yaml: colour: unknown key; known: " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (None, "cannot be read: No such file or directory"),
        (b"{", "truncated"),
        (b'{"version": 99}', "version 99 of the file, this is a program for version VERSION"),
        (b'{"version": VERSION}', "missing required field `topology`"),
    ],
)
def test_an_invalid_file_is_refused(
    content: bytes | None, problem: str, case: StudyCase, tmp_path: Path
):
    path, version = tmp_path / case.file, str(case.study.version)
    if content is not None:
        path.write_bytes(content.replace(b"VERSION", version.encode()))
    with pytest.raises(UsageError, match=f"(?i){problem.replace('VERSION', version)}"):
        case.study.read(path)


def test_a_row_with_an_unknown_field_is_refused(case: StudyCase, tmp_path: Path):
    path = tmp_path / case.file
    path.write_bytes(msgspec.json.encode(case.results).replace(b'"rows":[{', b'"rows":[{"more":1,'))
    with pytest.raises(UsageError, match=r"unknown field `more` - at `\$.rows"):
        case.study.read(path)


@pytest.mark.slow
def test_the_figures_of_a_file_are_drawn_without_simulating(
    case: StudyCase, fast: Path, capsys: pytest.CaptureFixture[str]
):
    before = (fast / case.file).read_bytes()
    assert case.run("--out", str(fast)) == 0
    assert (fast / case.file).read_bytes() == before
    assert {path.name for path in fast.iterdir()} == set(case.files)
    for path in fast.glob("*.png"):
        # Width and height are the first fields of the IHDR chunk (PNG specification, 11.2.2).
        width, height = struct.unpack(">II", path.read_bytes()[16:24])
        assert width == 1200
        assert 300 < height < 1500
    printed = capsys.readouterr()
    assert printed.err == ""
    assert "…" not in printed.out
    named = [line.split() for line in printed.out.splitlines()[-len(case.files) :]]
    assert named == [
        ["files", f"{fast}/{case.file}"],
        *([f"{fast}/{name}"] for name in case.files[1:]),
    ]


@pytest.mark.slow
def test_a_fault_in_the_file_is_exit_code_1(
    case: StudyCase, fast: Path, capsys: pytest.CaptureFixture[str]
):
    first, *others = case.results.rows
    rows = (msgspec.structs.replace(first, **case.wrong), *others)
    results_file.write(fast / case.file, msgspec.structs.replace(case.results, rows=rows))
    assert case.run("--out", str(fast)) == 1
    assert case.fault in capsys.readouterr().out


@pytest.mark.parametrize(
    ("environment", "arguments", "problem"),
    [
        ("0", ["--topology", "missing.yaml"], "missing.yaml: no such file"),
        ("1", [], "benches/1H_milestone_output/{file} cannot be read: No such file or directory"),
        ("1", ["--out", "elsewhere"], "elsewhere/{file} cannot be read: No such file or directory"),
        ("1", ["{option}", "{value}"], "{option} with MILESTONE_FAST=1: nothing is simulated"),
        (
            "1",
            ["--topology", "topology.yaml"],
            "--topology with MILESTONE_FAST=1: nothing is simulated",
        ),
        ("yes", [], "MILESTONE_FAST is 'yes': 1 draws the figures again without simulating"),
    ],
)
def test_options_that_do_not_fit_together_are_refused_by_name(
    environment: str,
    arguments: list[str],
    problem: str,
    case: StudyCase,
    fast: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    monkeypatch.setenv("MILESTONE_FAST", environment)
    option, value = case.option
    *arguments, problem = (
        text.format(file=case.file, option=option, value=value) for text in (*arguments, problem)
    )
    assert case.run(*arguments) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    [line] = printed.err.splitlines()
    assert line.startswith(f"kernbench: error: {problem}")
    assert [path.name for path in fast.iterdir()] == [case.file]


def test_without_matplotlib_the_error_names_the_extra_to_install(
    case: StudyCase, fast: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    for module in [
        name for name in sys.modules if name.startswith("matplotlib") or name.endswith(".figures")
    ]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setattr(sys, "meta_path", [_NoMatplotlib, *sys.meta_path])
    assert case.run("--out", str(fast)) == 2
    assert capsys.readouterr().err == (
        "kernbench: error: the figures need matplotlib, the extra `plots`: "
        "pip install 'kernbench[plots]'\n"
    )


class _NoMatplotlib:
    """An import hook that finds no matplotlib."""

    @staticmethod
    def find_spec(name: str, path: object, target: object = None) -> None:
        if name.partition(".")[0] == "matplotlib":
            raise ModuleNotFoundError(f"No module named {name!r}", name="matplotlib")
