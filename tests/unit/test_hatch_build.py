"""Requirements of the build hook, and that builds of one tree take turns."""

import fcntl
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import hatch_build
from hatch_build import CompiledCore
from runtime.core.compiled.sources import sources

ROOT = Path(__file__).parents[2]


def hook() -> CompiledCore:
    return CompiledCore.__new__(CompiledCore)


def test_a_build_with_the_core_needs_the_extra_core(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("KERNBENCH_CORE", raising=False)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert hook().dependencies() == project["optional-dependencies"]["core"]


def test_a_build_without_the_core_needs_nothing_else(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("KERNBENCH_CORE", "python")
    assert hook().dependencies() == []


def test_the_hook_is_loaded_without_cython_and_setuptools():
    """An isolated build that needs no core has neither."""
    program = (
        "import sys; sys.modules['Cython'] = sys.modules['setuptools'] = None; import hatch_build"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=False)
    assert done.returncode == 0


def test_a_build_reports_that_it_waits_for_another(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    real = fcntl.flock
    with (tmp_path / "lock").open("w") as other:
        real(other, fcntl.LOCK_EX)

        def flock(file: object, operation: int) -> None:
            if operation == fcntl.LOCK_EX:
                # The other build ends while this one waits.
                real(other, fcntl.LOCK_UN)
            real(file, operation)

        monkeypatch.setattr(fcntl, "flock", flock)
        with hatch_build._no_other_build(tmp_path), pytest.raises(BlockingIOError):
            real(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    assert capsys.readouterr().err == ("another process builds the compiled core; waiting for it\n")


def test_builds_share_the_cache_of_the_user(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert hatch_build.cache_folder() == tmp_path / "cache" / "kernbench" / "core"
    assert hatch_build.cache_folder().stat().st_mode & 0o077 == 0
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert hatch_build.cache_folder() == tmp_path / "home" / ".cache" / "kernbench" / "core"


def test_a_build_without_a_writable_home_keeps_what_it_makes_in_the_tree(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    (tmp_path / "file").touch()
    for variable in ("XDG_CACHE_HOME", "HOME"):
        monkeypatch.setenv(variable, str(tmp_path / "file"))
    monkeypatch.setattr(hatch_build, "ROOT", tmp_path / "tree")
    assert hatch_build.cache_folder() == tmp_path / "tree" / "build" / "core"


def test_the_build_sees_each_way_to_reach_a_pxd(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """An edit that the build does not see would be left out of the next one."""
    texts = {
        "part/text.py": "",
        "part/text.pxd": "from part cimport first, second as other\n"
        "from part.third cimport (\n    A,\n)\n",
        "part/first.pxd": "from cpython.bytes cimport PyBytes_Size\n",
        "part/second.pxd": "cimport part.fourth\n",
        "part/third.pxd": "cdef class A:\n    pass\n",
        "part/fourth.pxd": "from libc cimport \\\n    limits\n",
        "part/apart.pxd": "",
    }
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    [used] = hatch_build._used(["part/text.py"]).values()
    assert [str(path) for path in used if not path.is_absolute()] == [
        f"part/{name}"
        for name in ("first.pxd", "fourth.pxd", "second.pxd", "text.pxd", "text.py", "third.pxd")
    ]
    assert [path.name for path in used if path.is_absolute()] == [
        "bytes.pxd",
        "__init__.pxd",
        "limits.pxd",
    ]


def test_a_module_is_not_declared_in_its_package():
    """A `cimport a.b as c` in any module lets each one that reads `a` reach `b` too."""
    declared = re.compile(r"^\s*cimport\s+\w+\.", re.MULTILINE)
    found = {
        path for path in sources(ROOT) if path.suffix != ".py" and declared.search(path.read_text())
    }
    assert found == set()


def test_what_cython_refuses_is_named_and_the_rest_is_translated(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
):
    pytest.importorskip("Cython")
    from Cython.Compiler.Errors import CompileError

    for name, text in {"right": "N = 1", "wrong": "cdef int n = []", "wide": "cdef long n"}.items():
        (tmp_path / f"{name}.pyx").write_text(f"{text}\n")
    monkeypatch.chdir(tmp_path)
    made = tmp_path / "made"
    with pytest.raises(CompileError, match=r"^wrong\.pyx$"):
        hatch_build._translate(["right.pyx", "wrong.pyx"], made)
    assert (made / "right.c").exists()
    assert "wrong.pyx:1:13" in capfd.readouterr().err
    (tmp_path / "wide.pxd").write_text("cdef Nothing n\n")
    with pytest.raises(CompileError, match=r"^wide\.pxd$"):
        hatch_build._translate(["wide.pyx"], made)
    assert "wide.pxd:1:5" in capfd.readouterr().err


def test_a_comment_in_a_pxd_compiles_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    pytest.importorskip("Cython")
    from setuptools import Distribution, Extension

    (tmp_path / "one.pyx").write_text("cdef class One:\n    pass\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(hatch_build, "ROOT", tmp_path)
    objects = tmp_path / "objects"
    for text, compiled in (("", 1), ("# A comment.\n", 1), ("cdef int n\n", 2)):
        (tmp_path / "one.pxd").write_text(f"{text}cdef class One:\n    cdef int x\n")
        extension = Extension("linked", ["one.pyx"])
        command = hatch_build._linked_modules(objects)(Distribution({"ext_modules": [extension]}))
        command.build_lib, command.build_temp = str(tmp_path), str(tmp_path / "made")
        command.ensure_finalized()
        command.run()
        assert len({path.read_bytes() for path in objects.iterdir()}) == compiled
