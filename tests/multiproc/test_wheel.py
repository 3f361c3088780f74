"""A wheel carries the compiled core, and its command works from an empty directory."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.golden.renew import stored
from tests.support.runs import ROOT
from tests.support.source import tracked_files

pytestmark = [pytest.mark.slow, pytest.mark.multiproc, pytest.mark.nightly]


def run(*command: str | Path, where: Path, **variables: str) -> str:
    done = subprocess.run(
        [str(word) for word in command],
        cwd=where,
        env=os.environ | variables,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder into which the wheel of this checkout is installed, without its dependencies."""
    folder = tmp_path_factory.mktemp("wheel")
    tree, dist, site = folder / "tree", folder / "dist", folder / "site"
    for path in tracked_files(ROOT):
        copy = tree / path.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, copy)
    if (ROOT / "build" / "core").exists():
        # What the build of this checkout has compiled; the wheel's build finds it by its hash.
        shutil.copytree(ROOT / "build" / "core", tree / "build" / "core")
    pip = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check")
    run(*pip, "wheel", "--no-deps", "--no-build-isolation", "-w", dist, ".", where=tree)
    [wheel] = dist.glob("*.whl")
    run(*pip, "install", "--no-deps", "--no-index", "--target", site, wheel, where=folder)
    return site


def test_the_command_of_a_wheel_runs_its_compiled_core(site: Path, tmp_path: Path) -> None:
    variables = {"PYTHONPATH": str(site), "KERNBENCH_CORE": "compiled"}
    command = site / "bin" / "kernbench"
    printed = run(command, "--sips", "2", where=tmp_path, **variables)
    digest = stored()["default bench, 2 SIPs"].digest
    assert f"digest          {digest[:16]}" in printed
    imported = "import kernbench, runtime.core.compiled.build as core"
    files = f"{imported}; print(kernbench.__file__, core.__file__)"
    for file in run(sys.executable, "-c", files, where=tmp_path, **variables).split():
        assert Path(file).is_relative_to(site)
