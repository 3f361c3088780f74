"""What all studies do alike, as the command line has it: what they read, write, print and refuse."""

import struct
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest

from kernbench.cli.main import main
from kernbench.studies import sweep_file
from kernbench.studies.ccl_algorithms.rows import read_sweep as read_algorithms
from kernbench.studies.milestone import simulated
from kernbench.studies.milestone_1h_ccl.figures import FIGURES as CCL_FIGURES
from kernbench.studies.milestone_1h_ccl.rows import read_sweep as read_ccl
from kernbench.studies.milestone_1h_gemm.figures import FIGURES as GEMM_FIGURES
from kernbench.studies.milestone_1h_gemm.rows import read_sweep as read_gemm
from kernbench.studies.milestone_1h_gemm.shapes import Shape
from runtime.core.bench_registry import StudyOptions
from runtime.core.config_file import default_file, read_text
from runtime.core.errors import UsageError
from tests.support import algorithm_rows, ccl_rows, gemm_rows


@dataclass(frozen=True)
class Study:
    """A study, the rows of an earlier sweep, what is a fault of the first one, its files as it lists them, and an option."""

    name: str
    sweep: algorithm_rows.Sweep | ccl_rows.Sweep | gemm_rows.Sweep
    read: Callable[[Path], msgspec.Struct]
    wrong: dict[str, float]
    fault: str
    files: tuple[str, ...]
    option: tuple[str, str]

    def run(self, *words: str) -> int:
        return main(["--bench", self.name, *words])

    @property
    def file(self) -> str:
        return self.files[0]


STUDIES = (
    Study(
        "ccl-algorithms",
        algorithm_rows.sweep(),
        read_algorithms,
        {"wrong": 1},
        "ring 2 ranks 2 B: 1 elements are wrong",
        ("ccl_algorithms.json", "ccl_algorithms.csv", "ccl_algorithms.png"),
        ("--max-bytes", "1024"),
    ),
    Study(
        "milestone-1h-ccl",
        ccl_rows.sweep(),
        read_ccl,
        {"wrong": 1},
        "ring_1d 4 ring tcm 256 B: 1 elements are wrong",
        ("ccl_sweep.json", "ccl_summary.csv", *(f"ccl_{name}.png" for name in CCL_FIGURES)),
        ("--max-bytes", "1024"),
    ),
    Study(
        "milestone-1h-gemm",
        gemm_rows.sweep(Shape(16, 32, 16), Shape(256, 64, 32)),
        read_gemm,
        {"error": 2.0},
        "16x32x16 ref_ref: wrong result",
        ("gemm_sweep.json", *(f"gemm_{name}.png" for name in GEMM_FIGURES)),
        ("--shapes", "8x8x8"),
    ),
)


@pytest.fixture(params=STUDIES, ids=lambda study: study.name)
def study(request: pytest.FixtureRequest) -> Study:
    return request.param


@pytest.fixture
def fast(study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with the rows of an earlier sweep, and the environment that asks for them."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MILESTONE_FAST", "1")
    sweep_file.write(tmp_path / study.file, study.sweep)
    return tmp_path


def test_what_is_simulated_is_written_to_a_directory_that_is_made_and_read_again(
    study: Study, tmp_path: Path
):
    given: list[object] = []

    def plan(source: str, text: str) -> str:
        given.extend((source, text))
        return "the plan"

    def simulate(plan: str, procs: int, timeout_s: float) -> msgspec.Struct:
        given.extend((plan, procs, timeout_s))
        return study.sweep

    file = tmp_path / "new" / study.file
    assert simulated(StudyOptions(procs=3, timeout_s=7.5), file, plan, simulate) is study.sweep
    assert given == ["topology.yaml", read_text(default_file("topology.yaml")), "the plan", 3, 7.5]
    assert study.read(file) == study.sweep


def test_where_nothing_can_be_written_nothing_is_simulated(tmp_path: Path):
    (tmp_path / "taken").touch()
    with pytest.raises(UsageError, match=r"^--out: cannot write to .*/taken: File exists$"):
        simulated(
            StudyOptions(),
            tmp_path / "taken" / "sweep.json",
            lambda source, text: source,
            lambda plan, procs, timeout_s: pytest.fail("it is simulated"),
        )


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (None, "cannot be read: No such file or directory"),
        (b"{", "truncated"),
        (b'{"version": 2}', "version 2 of the file, this is a program for version 1"),
        (b'{"version": 1}', "missing required field `topology`"),
    ],
)
def test_a_file_that_is_none_of_ours_is_refused(
    content: bytes | None, problem: str, study: Study, tmp_path: Path
):
    path = tmp_path / study.file
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UsageError, match=f"(?i){problem}"):
        study.read(path)


def test_a_row_with_an_unknown_field_is_refused(study: Study, tmp_path: Path):
    path = tmp_path / study.file
    path.write_bytes(msgspec.json.encode(study.sweep).replace(b'"rows":[{', b'"rows":[{"more":1,'))
    with pytest.raises(UsageError, match=r"unknown field `more` - at `\$.rows"):
        study.read(path)


@pytest.mark.slow
def test_the_fast_way_draws_and_names_what_is_in_the_file(
    study: Study, fast: Path, capsys: pytest.CaptureFixture[str]
):
    before = (fast / study.file).read_bytes()
    assert study.run("--out", str(fast)) == 0
    assert (fast / study.file).read_bytes() == before
    assert {path.name for path in fast.iterdir()} == set(study.files)
    for path in fast.glob("*.png"):
        # Width and height are the first fields of the IHDR chunk (PNG specification, 11.2.2).
        width, height = struct.unpack(">II", path.read_bytes()[16:24])
        assert width == 1200
        assert 300 < height < 1500
    printed = capsys.readouterr()
    assert printed.err == ""
    assert "…" not in printed.out
    named = [line.split() for line in printed.out.splitlines()[-len(study.files) :]]
    assert named == [
        ["files", f"{fast}/{study.file}"],
        *([f"{fast}/{name}"] for name in study.files[1:]),
    ]


@pytest.mark.slow
def test_a_fault_in_the_file_is_exit_code_1(
    study: Study, fast: Path, capsys: pytest.CaptureFixture[str]
):
    first, *others = study.sweep.rows
    rows = (msgspec.structs.replace(first, **study.wrong), *others)
    sweep_file.write(fast / study.file, msgspec.structs.replace(study.sweep, rows=rows))
    assert study.run("--out", str(fast)) == 1
    assert study.fault in capsys.readouterr().out


@pytest.mark.parametrize(
    ("environment", "words", "problem"),
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
def test_what_means_nothing_to_a_study_is_refused_by_name(
    environment: str,
    words: list[str],
    problem: str,
    study: Study,
    fast: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    monkeypatch.setenv("MILESTONE_FAST", environment)
    option, value = study.option
    *words, problem = (
        text.format(file=study.file, option=option, value=value) for text in (*words, problem)
    )
    assert study.run(*words) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    [line] = printed.err.splitlines()
    assert line.startswith(f"kernbench: error: {problem}")
    assert [path.name for path in fast.iterdir()] == [study.file]


def test_without_matplotlib_a_study_says_what_to_install(
    study: Study, fast: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    for module in [
        name for name in sys.modules if name.startswith("matplotlib") or name.endswith(".figures")
    ]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setattr(sys, "meta_path", [_NoMatplotlib, *sys.meta_path])
    assert study.run("--out", str(fast)) == 2
    assert capsys.readouterr().err == (
        "kernbench: error: the figures need matplotlib, the extra `plots`: pip install 'kernbench[plots]'\n"
    )


class _NoMatplotlib:
    """An importer of an environment without matplotlib."""

    @staticmethod
    def find_spec(name: str, path: object, target: object = None) -> None:
        if name.partition(".")[0] == "matplotlib":
            raise ModuleNotFoundError(f"No module named {name!r}", name="matplotlib")
