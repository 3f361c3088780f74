"""LPs with different code: the run ends with an error that names both LPs and the file."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from coordinator.launch.launcher import Child, InterpreterLauncher, LpSpec
from coordinator.plan import ProgramSpec, load_config
from coordinator.session import RunResult, Session
from coordinator.watch.failure import CodeDiffersError
from runtime.core.config.config_file import with_values
from tests.support.runs import launched
from tests.support.sessions import ROOT, Recorder, plan

pytestmark = [pytest.mark.slow, pytest.mark.multiproc]

PACKAGES = ("runtime", "sip_node", "coordinator", "kernbench")
BENCH = ProgramSpec(
    kind="bench",
    name="ccl-allreduce",
    path="kernbench.benches.ccl_allreduce:ccl_allreduce",
    arguments={"min_bytes": 1024, "max_bytes": 1024},
)
# Every process imports `helper`: the first one edits it, the second one waits for the edit.
EDITED_BETWEEN_TWO_IMPORTS = """
import os, pathlib, time
from runtime import torch

folder = pathlib.Path(__file__).parent
try:
    (folder / "first").mkdir()
    is_first = True
except FileExistsError:
    is_first = False
while not is_first and not (folder / "edited").exists():
    time.sleep(0.01)
import helper
if is_first:
    (folder / "helper.py").write_text("SIZE = 2048\\n")
    (folder / "edited").touch()
"""
SCRIPT = (
    EDITED_BETWEEN_TWO_IMPORTS
    + """
torch.distributed.init_process_group("ahbm")
torch.distributed.all_reduce(torch.zeros((16, 1024), dtype=torch.float16))
torch.ahbm.synchronize()
"""
)


class TwoCheckouts:
    """A launcher: LP 0 runs this checkout, every other LP the checkout at `root`."""

    def __init__(self, root: Path) -> None:
        self._start = root / "start.py"
        self._start.write_text(
            "import runpy, sys\n"
            f"sys.path.insert(0, {str(root)!r})\n"
            "runpy.run_module('sip_node', run_name='__main__')\n"
        )

    def start(self, spec: LpSpec) -> Child:
        own = InterpreterLauncher()
        other = InterpreterLauncher((sys.executable, "-P", str(self._start)))
        return (own if spec.lp == 0 else other).start(spec)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    root = tmp_path / "copy"
    for name in PACKAGES:
        shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("topology.yaml", "ccl.yaml"):
        shutil.copy(ROOT / name, root)
    return root


def run_with(copy: Path, files: Path | None = None) -> RunResult:
    """A run with `copy` as the code of LP 1, and the configuration files in the folder `files`."""
    topology, ccl = (
        files / name if files is not None and (files / name).exists() else None
        for name in ("topology.yaml", "ccl.yaml")
    )
    config = load_config(topology, ccl, 2, () if files is None else (str(files),))
    run = replace(plan(), program=BENCH, config=config)
    return Session(run, TwoCheckouts(copy), Recorder()).run()


def test_two_copies_of_one_code_are_one_code(copy: Path):
    result = run_with(copy)
    assert result.error is None
    assert len(result.code["sip_node.pdes.loop"].sha256) == 64


def test_one_changed_line_in_the_package_of_one_lp_ends_the_run_before_its_start(copy: Path):
    changed = copy / "runtime" / "model" / "routing.py"
    changed.write_text(changed.read_text() + "\n_CHANGED = 1\n")
    result = run_with(copy)
    assert isinstance(result.error, CodeDiffersError)
    assert (result.error.process, result.error.other) == ("LP 0", "LP 1")
    assert result.error.module == "runtime.model.routing"
    text = str(result.error)
    assert str(changed) in text
    assert str(ROOT / "runtime" / "model" / "routing.py") in text
    assert result.collected.reached_ps == {}, "no LP has started"


@pytest.mark.parametrize(
    ("file", "source", "changes"),
    [
        (
            "topology.yaml",
            "from sip_node.chip.memory.storage import HbmController\n",
            {"impl.hbm_ctrl": "users_own:HbmController"},
        ),
        (
            "ccl.yaml",
            "from runtime.ccl.algorithms.ring import *\n",
            {"algorithms.ring.module": "users_own"},
        ),
    ],
)
def test_a_module_which_a_configuration_file_names_differs_and_ends_the_run_before_its_start(
    copy: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    file: str,
    source: str,
    changes: dict[str, str],
):
    (tmp_path / "users_own.py").write_text(source)
    (copy / "users_own.py").write_text(source + "X = 1\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    text = (ROOT / file).read_text()
    (tmp_path / file).write_text(yaml.safe_dump(with_values(yaml.safe_load(text), changes)))
    result = run_with(copy, tmp_path)
    assert isinstance(result.error, CodeDiffersError)
    assert result.error.module == "users_own"
    assert (result.error.process, result.error.other) == ("LP 0", "LP 1")
    assert result.collected.reached_ps == {}, "no LP has started"


def test_a_module_of_a_script_that_is_edited_between_the_imports_of_two_ranks_ends_the_run(
    tmp_path: Path,
):
    (tmp_path / "helper.py").write_text("SIZE = 1024\n")
    (tmp_path / "train.py").write_text(SCRIPT)
    run = launched(tmp_path / "out", "--sips", "2", "train.py")
    assert run.code == 1
    assert "LP 0 and LP 1 differ in the code of module 'helper'" in run.err
    assert str(tmp_path / "helper.py") in run.err
    assert "helper" in run.report["error"]


def test_a_module_of_a_program_that_is_edited_while_its_ranks_are_spawned_ends_the_run(
    tmp_path: Path,
):
    (tmp_path / "helper.py").write_text("SIZE = 1024\n")
    (tmp_path / "program.py").write_text(EDITED_BETWEEN_TWO_IMPORTS)
    # The children import `program` and with it `helper`, before any code of an LP runs in them.
    (tmp_path / "main.py").write_text(
        "from runtime import torch\n"
        "def rank(rank):\n"
        "    pass\n"
        "if __name__ == '__mp_main__':\n"
        "    import program\n"
        "if __name__ == '__main__':\n"
        "    import helper\n"
        "    torch.multiprocessing.spawn(rank, nprocs=2)\n"
    )
    done = subprocess.run(
        [sys.executable, str(tmp_path / "main.py")],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        timeout=100,
        check=False,
    )
    assert done.returncode != 0
    assert "CodeDiffersError: the coordinator and LP 0 differ in the code" in done.stderr
    assert str(tmp_path / "helper.py") in done.stderr


def test_a_run_keeps_the_hashes_of_its_code(tmp_path: Path):
    (tmp_path / "helper.py").write_text("SIZE = 1024\n")
    (tmp_path / "train.py").write_text("import helper\n")
    run = launched(tmp_path / "out", "--sips", "2", "train.py")
    assert run.code == 0
    code = run.report["code"]
    assert {"__main__", "helper", "sip_node.node", "runtime.core.errors"} <= set(code)
    assert list(code) == sorted(code)
    assert json.dumps(code).count("unreadable") == 0
