"""Report of a process about the code that it has imported."""

import compileall
import os
import sys
import zipfile
from collections.abc import Callable, Iterator
from hashlib import sha256
from importlib import import_module, invalidate_caches
from pathlib import Path

import pytest

from runtime.core.code.imported_code import (
    EXPECTED_CODE,
    SCRIPT,
    UNREADABLE,
    CodeFile,
    ImportRecorder,
    expected_code,
    imported_code,
)
from runtime.core.errors import UsageError

MODULE = "code_of_a_user"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    sys.modules.pop(MODULE, None)


@pytest.fixture
def recorder() -> Iterator[ImportRecorder]:
    recorder = ImportRecorder()
    # What the process of the test had imported before is of no interest here.
    recorder.news()
    yield recorder
    recorder.close()


def code_of(data: bytes, file: Path) -> CodeFile:
    return CodeFile(str(file), sha256(data).hexdigest())


def imported(folder: Path, source: bytes) -> CodeFile:
    """Write the module and import it."""
    file = folder / f"{MODULE}.py"
    file.write_bytes(source)
    invalidate_caches()
    import_module(MODULE)
    return code_of(source, file)


def test_an_imported_module_is_reported_once_with_the_hash_of_its_source(
    folder: Path, recorder: ImportRecorder
):
    expected = imported(folder, b"X = 1\n")
    assert recorder.news() == {MODULE: expected}
    assert recorder.news() == {}


def test_an_edit_after_the_import_does_not_change_the_hash(folder: Path, recorder: ImportRecorder):
    expected = imported(folder, b"X = 1\n")
    (folder / f"{MODULE}.py").write_bytes(b"X = 2\n")
    assert recorder.news() == {MODULE: expected}


def test_one_byte_makes_another_hash(folder: Path, recorder: ImportRecorder):
    first = imported(folder, b"X = 1\n")
    recorder.news()
    del sys.modules[MODULE]
    second = imported(folder, b"X = 2\n")
    assert first.sha256 != second.sha256
    assert recorder.news() == {MODULE: second}


def test_modules_imported_earlier_are_read_when_they_are_reported(folder: Path):
    expected = imported(folder, b"X = 1\n")
    recorder = ImportRecorder()
    assert recorder.news()[MODULE] == expected
    recorder.close()


def test_the_package_is_covered_and_libraries_are_not():
    modules = imported_code()
    assert "runtime.core.code.imported_code" in modules
    assert not {"json", "numpy", "pytest", "sys", "zipimport"} & set(modules)
    assert {"json", "numpy", "pytest", "sys", "zipimport"} & set(sys.modules)


def test_a_script_is_recorded_when_it_starts(tmp_path: Path, recorder: ImportRecorder):
    script = tmp_path / "train.py"
    script.write_bytes(b"pass\n")
    recorder.record(script)
    script.write_bytes(b"1\n")
    assert recorder.news() == {SCRIPT: code_of(b"pass\n", script)}


def _zipped(folder: Path) -> Path:
    archive = folder / "code.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr(f"{MODULE}.py", "X = 1\n")
    return archive


def _compiled(folder: Path) -> Path:
    source = folder / "only" / f"{MODULE}.py"
    source.parent.mkdir()
    source.write_bytes(b"X = 1\n")
    compileall.compile_file(source, quiet=1, legacy=True)
    source.unlink()
    return source.parent


@pytest.mark.parametrize("place", [_zipped, _compiled])
def test_code_without_a_source_file_is_hashed_as_its_loader_reads_it(
    folder: Path,
    recorder: ImportRecorder,
    monkeypatch: pytest.MonkeyPatch,
    place: Callable[[Path], Path],
):
    monkeypatch.syspath_prepend(str(place(folder)))
    import_module(MODULE)
    (file,) = recorder.news().values()
    assert len(file.sha256) == 64
    data = b"X = 1\n" if place is _zipped else Path(file.file).read_bytes()
    assert file.sha256 == sha256(data).hexdigest()


def test_a_file_that_cannot_be_read_is_stated(tmp_path: Path, recorder: ImportRecorder):
    recorder.record(tmp_path / "gone.py")
    assert recorder.news() == {SCRIPT: CodeFile(str(tmp_path / "gone.py"), UNREADABLE)}


def test_a_module_that_will_be_imported_is_found_with_its_parents(
    folder: Path, recorder: ImportRecorder
):
    package = folder / "package_of_a_user"
    package.mkdir()
    (package / "__init__.py").write_bytes(b"X = 1\n")
    (package / "part.py").write_bytes(b"X = 2\n")
    recorder.find("package_of_a_user.part", [str(folder)])
    recorder.find("package_of_a_user.missing", [str(folder)])
    recorder.find("missing_package.part")
    recorder.find("json.decoder")
    assert recorder.news() == {
        "package_of_a_user": code_of(b"X = 1\n", package / "__init__.py"),
        "package_of_a_user.part": code_of(b"X = 2\n", package / "part.py"),
    }
    assert "package_of_a_user" not in sys.modules


def test_a_module_in_nested_namespace_packages_is_found(folder: Path, recorder: ImportRecorder):
    module = folder / "outer_of_a_user" / "inner" / "part.py"
    module.parent.mkdir(parents=True)
    module.write_bytes(b"X = 1\n")
    recorder.find("outer_of_a_user.inner.part", [str(folder)])
    assert recorder.news() == {"outer_of_a_user.inner.part": code_of(b"X = 1\n", module)}


def test_a_module_that_has_been_imported_keeps_the_hash_of_its_import(
    folder: Path, recorder: ImportRecorder
):
    expected = imported(folder, b"X = 1\n")
    (folder / f"{MODULE}.py").write_bytes(b"X = 2\n")
    recorder.find(MODULE)
    assert recorder.news() == {MODULE: expected}


def test_a_closed_recorder_records_nothing(folder: Path):
    recorder = ImportRecorder()
    finders = len(sys.meta_path)
    recorder.close()
    assert len(sys.meta_path) == finders - 1
    assert os.fspath(folder) in sys.path


def test_a_repetition_imports_the_modules_of_its_run(folder: Path):
    source = b"X = 1\n"
    recorder = ImportRecorder({MODULE: code_of(source, folder / f"{MODULE}.py")})
    try:
        assert imported(folder, source) == recorder.news()[MODULE]
    finally:
        recorder.close()


@pytest.mark.parametrize(
    ("expected", "problem"),
    [
        ({}, "is not a module of the recorded run"),
        ({MODULE: b"X = 1\n"}, "is not the content of the recorded run"),
    ],
    ids=["added", "changed"],
)
def test_a_repetition_executes_nothing_of_another_module(
    folder: Path, expected: dict[str, bytes], problem: str
):
    file = folder / f"{MODULE}.py"
    recorder = ImportRecorder({name: code_of(data, file) for name, data in expected.items()})
    planted = f"open({str(folder / 'executed')!r}, 'w')\n".encode()
    try:
        with pytest.raises(UsageError, match=problem):
            imported(folder, planted)
        with pytest.raises(UsageError, match=problem):
            recorder.record(file, MODULE)
    finally:
        recorder.close()
    assert not (folder / "executed").exists()


def test_a_module_in_another_folder_is_another_module(folder: Path):
    source = b"X = 1\n"
    recorder = ImportRecorder({MODULE: code_of(source, folder / "elsewhere" / f"{MODULE}.py")})
    try:
        with pytest.raises(UsageError, match="its program has changed"):
            imported(folder, source)
    finally:
        recorder.close()


def test_a_repetition_imports_libraries_and_kernbench(monkeypatch: pytest.MonkeyPatch):
    for name in ("wave", "runtime.core.cores"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    recorder = ImportRecorder({})
    try:
        assert import_module("wave").__name__ == "wave"
        assert import_module("runtime.core.cores").__name__ == "runtime.core.cores"
    finally:
        recorder.close()


def test_the_expected_code_comes_from_the_file_that_a_variable_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delenv(EXPECTED_CODE, raising=False)
    assert expected_code() is None
    file = tmp_path / "code.json"
    monkeypatch.setenv(EXPECTED_CODE, str(file))
    with pytest.raises(UsageError, match=f"{EXPECTED_CODE}: cannot read"):
        expected_code()
    file.write_text('{"model": ["/x/model.py", "ab"]}')
    assert expected_code() == {"model": CodeFile("/x/model.py", "ab")}
    file.write_text('{"model": 3}')
    with pytest.raises(UsageError, match=f"{EXPECTED_CODE}: cannot read"):
        expected_code()
