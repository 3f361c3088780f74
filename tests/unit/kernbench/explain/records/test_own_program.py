"""The program of a recorded run is executed only if it is the caller's own and unchanged."""

import os
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest

from kernbench.explain.records import RecordedRun, open_run
from kernbench.explain.records.own_program import doubts
from tests.support.run_tables import change_report, tables, write_run

STRANGER = 54_321
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to others")


def code(*paths: Path) -> dict[str, tuple[str, str]]:
    """The recorded code of a script and of the modules beside it."""
    names = ["__main__", *(path.stem for path in paths[1:])]
    hashes = [sha256(path.read_bytes()).hexdigest() for path in paths]
    return dict(zip(names, zip(map(str, paths), hashes, strict=True), strict=True))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path.resolve() / "project"
    folder.mkdir(mode=0o700)
    (folder / "train.py").write_text("import model\n")
    (folder / "model.py").write_text("SIZE = 1\n")
    return folder


@pytest.fixture
def run(project: Path) -> Path:
    """A run of `train.py`, which imported `model.py`."""
    files = (project / "train.py", project / "model.py")
    report: dict[str, Any] = {"kind": "script", "program": str(files[0]), "user_code": code(*files)}
    return write_run(project / "runs", [tables()], 5, **report)


def doubt(run: Path) -> str:
    """The first reason not to execute the program of the run."""
    return next(doubts(open_run(run)), "")


def test_an_own_and_unchanged_program_is_not_in_doubt(run: Path):
    assert doubt(run) == ""


def test_a_bench_of_kernbench_is_not_in_doubt(tmp_path: Path):
    program = "kernbench.benches.ccl_allreduce:ccl_allreduce"
    assert doubt(write_run(tmp_path / "run", [tables()], 5, program=program)) == ""


CHANGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "changed script": (
        lambda project: (project / "train.py").write_text("import os\n"),
        "train.py has changed since the run",
    ),
    "changed module": (
        lambda project: (project / "model.py").write_text("SIZE = 2\n"),
        "model.py has changed since the run",
    ),
    "removed module": (
        lambda project: (project / "model.py").unlink(),
        "model.py: No such file or directory",
    ),
    "folder in place of a module": (
        lambda project: ((project / "model.py").unlink(), (project / "model.py").mkdir()),
        "model.py is not a file",
    ),
    "link in place of a module": (
        lambda project: (
            (project / "model.py").rename(project / "m.py"),
            (project / "model.py").symlink_to("m.py"),
        ),
        "model.py is not a path without links",
    ),
    "module that others can write": (
        lambda project: (project / "model.py").chmod(0o666),
        "other users can write to",
    ),
    "folder that others can write": (
        lambda project: project.chmod(0o777),
        "other users can write to",
    ),
    "compiled code that others can write": (
        lambda project: ((project / "__pycache__").mkdir(), (project / "__pycache__").chmod(0o777)),
        "__pycache__ (mode 777)",
    ),
    "directory that others can write": (
        lambda project: (project / "runs").chmod(0o777),
        "other users can write to",
    ),
    "report that others can write": (
        lambda project: (project / "runs" / "run.json").chmod(0o622),
        "run.json (mode 622)",
    ),
}


@pytest.mark.parametrize(("change", "reason"), CHANGES.values(), ids=CHANGES)
def test_a_program_that_is_not_as_it_was_is_in_doubt(
    run: Path, project: Path, change: Callable[[Path], object], reason: str
):
    change(project)
    assert reason in doubt(run)


@needs_root
@pytest.mark.parametrize("name", ["runs", "runs/run.json", "runs/topology.yaml", "runs/ccl.yaml"])
def test_a_directory_of_another_user_is_in_doubt(run: Path, project: Path, name: str):
    os.chown(project / name, STRANGER, STRANGER)
    assert doubt(run).endswith(f"{name} belongs to user {STRANGER}, not to you")


@needs_root
@pytest.mark.parametrize("name", ["train.py", "model.py", "."])
def test_a_program_of_another_user_is_in_doubt(run: Path, project: Path, name: str):
    os.chown(project / name, STRANGER, STRANGER)
    assert f"{project / name} belongs to user {STRANGER}" in doubt(run)


def test_a_copy_of_a_directory_is_in_doubt(run: Path, project: Path):
    assert "is a copy of the directory" in doubt(copytree(run, project / "unpacked"))


def test_a_link_to_an_own_directory_is_that_directory(run: Path, project: Path):
    (project / "latest").symlink_to(run)
    assert doubt(project / "latest") == ""


@pytest.mark.parametrize("name", ["run.json", "topology.yaml", "ccl.yaml"])
def test_a_link_in_place_of_a_file_of_the_run_is_in_doubt(run: Path, project: Path, name: str):
    (run / name).rename(project / name)
    (run / name).symlink_to(project / name)
    assert f"cannot open {run}/{name}" in doubt(run)


def test_a_directory_that_is_exchanged_after_it_was_read_is_in_doubt(run: Path):
    records = open_run(run)
    change_report(run, argv=["--planted"])
    assert next(doubts(records)).endswith("run.json is not the file that the run has written")


@pytest.mark.parametrize(
    "report",
    [
        {"program": "/bin/planted.py"},
        {"program": "project/../train.py"},
        {"program": "train.py"},
        {"kind": "bench", "program": "/bin/planted.py:run"},
        {"kind": "bench", "program": "model.py:run"},
        {"kind": "bench", "program": "timeit:main"},
        {"kind": "bench", "program": "planted.kernbench:run"},
        {"kind": "module", "program": "timeit"},
        {"kind": "module", "program": "kernbench.cli"},
    ],
    ids=str,
)
def test_a_program_that_the_run_has_not_recorded_is_in_doubt(run: Path, report: dict[str, Any]):
    change_report(run, **report)
    assert "no record of the code of" in doubt(run)


@pytest.mark.parametrize("path", ["train.py", "../train.py", "{folder}/../project/train.py"])
def test_a_recorded_file_has_an_absolute_path_without_dots(run: Path, project: Path, path: str):
    path = path.format(folder=project)
    main = (path, code(project / "train.py")["__main__"][1])
    change_report(run, program=path, user_code={"__main__": main})
    assert "is not a path without links" in doubt(run)


@pytest.mark.parametrize(
    ("kind", "program", "module"),
    [
        ("bench", "model:run", "model"),
        ("bench", "{folder}/model.py:run", "model"),
        ("module", "model", "model"),
        ("module", "package", "package.__main__"),
    ],
)
def test_a_recorded_module_is_a_program_as_well(
    run: Path, project: Path, kind: str, program: str, module: str
):
    known = code(project / "train.py", project / "model.py")["model"]
    change_report(run, kind=kind, program=program.format(folder=project), user_code={module: known})
    assert doubt(run) == ""


def test_a_script_in_a_folder_with_the_sticky_bit_is_not_in_doubt_and_a_module_is(
    run: Path, project: Path
):
    files = code(project / "train.py", project / "model.py")
    project.chmod(0o1777)
    assert "other users can write to" in doubt(run)
    change_report(run, user_code={"__main__": files["__main__"]})
    assert doubt(run) == ""


def test_everything_that_is_in_doubt_is_listed(run: Path, project: Path):
    for name in ("train.py", "model.py"):
        (project / name).write_text("changed\n")
    records: RecordedRun = open_run(run)
    assert len(list(doubts(records))) == 2
