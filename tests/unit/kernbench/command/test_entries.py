"""Benches and studies outside the package: how `--bench` finds them, and what it refuses."""

import sys
from collections.abc import Generator
from pathlib import Path

import pytest

from kernbench.command.entries import find_entry
from runtime.core import bench_registry
from runtime.core.bench_registry import Bench, Study
from runtime.core.errors import UsageError

SOURCE = """
from kernbench import BenchOutcome, StudyOptions, bench, study

@bench("my-bench", "does little", size="elements")
def little(rank: int, *, size: int = 3) -> BenchOutcome:
    return BenchOutcome("little", size, 0)

@study("my-study", "runs nothing")
def nothing(options: StudyOptions) -> bool:
    return True

def no_bench():
    pass
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[Path]:
    """A working folder with `my_file.py`; what it registers and imports is forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(bench_registry, "_REGISTRY", dict(bench_registry._REGISTRY))
    (tmp_path / "my_file.py").write_text(SOURCE)
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]


def refusal(name: str) -> str:
    with pytest.raises(UsageError) as refused:
        find_entry(name, tuple)
    assert "\n" not in str(refused.value)
    return str(refused.value)


@pytest.mark.parametrize("name", ["my-bench", "little"])
def test_a_bench_in_a_file_has_its_registered_name_and_that_of_its_function(
    folder: Path, name: str
):
    found = find_entry(f"my_file.py:{name}", tuple)
    assert isinstance(found, Bench)
    assert (found.name, found.program) == ("my-bench", f"{folder / 'my_file.py'}:little")
    assert [flag.name for flag in found.flags] == ["size"]


def test_a_bench_in_a_module_is_found_from_the_working_directory(folder: Path):
    (folder / "package").mkdir()
    (folder / "package" / "module.py").write_text(SOURCE)
    found = find_entry("package.module:my-bench", tuple)
    assert isinstance(found, Bench)
    assert found.program == "package.module:little"


def test_a_study_in_a_file_is_found(folder: Path):
    assert isinstance(find_entry(f"{folder}/my_file.py:my-study", tuple), Study)


def test_a_file_may_import_the_files_beside_it(folder: Path):
    (folder / "sizes.py").write_text("SIZE = 7\n")
    text = "from sizes import SIZE\n" + SOURCE.replace("size: int = 3", "size: int = SIZE")
    (folder / "with_sizes.py").write_text(text)
    assert find_entry("with_sizes.py:little", tuple).flags[0].default == 7


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("my_file.py", "--bench my_file.py: add the name of a bench in it, my_file.py:NAME"),
        (":x", "unknown bench ':x'"),
        ("no_file.py:x", "--bench: no such file: no_file.py"),
        ("my_file.py:litle", "--bench: my_file.py has no bench 'litle'; did you mean 'little'?"),
        (
            "my_file.py:no_bench",
            (
                "--bench: no_bench of my_file.py is no bench: "
                "decorate it with @bench(name, description)"
            ),
        ),
        ("empty.py:x", "--bench: empty.py has no bench: decorate a function with @bench"),
        (
            "no_module.x:y",
            "--bench: no module 'no_module'; a file is given with its suffix .py",
        ),
    ],
)
def test_what_is_no_bench_is_refused_in_one_line(name: str, problem: str):
    Path("empty.py").touch()
    assert refusal(name) == problem


def test_a_file_that_raises_is_named_with_the_line(folder: Path):
    (folder / "broken.py").write_text("x = 1\nx / 0\n")
    assert refusal("broken.py:x") == (
        "--bench: broken.py cannot be imported: ZeroDivisionError: division by zero "
        f"({folder}/broken.py:2)"
    )


def test_the_line_of_a_wrong_flag_is_that_of_the_user(folder: Path):
    (folder / "flag.py").write_text(SOURCE.replace("size: int = 3", "size: int"))
    assert refusal("flag.py:little") == (
        "--bench: flag.py cannot be imported: TypeError: little: parameter 'size' is a flag, "
        f"so it needs a default ({folder}/flag.py:4)"
    )


def test_a_missing_package_of_a_file_is_not_taken_for_a_missing_bench(folder: Path):
    (folder / "needs.py").write_text("import no_such_package\n")
    assert "cannot be imported: ModuleNotFoundError: No module named 'no_such_package'" in refusal(
        "needs.py:x"
    )


def test_a_file_with_the_name_of_a_loaded_module_is_refused(folder: Path):
    (folder / "json.py").write_text(SOURCE)
    assert "json.py is hidden by the module json (" in refusal("json.py:little")
    assert refusal("json.py:little").endswith("json/__init__.py): rename it")
