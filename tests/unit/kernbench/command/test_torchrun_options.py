"""The options of torchrun: which ranks they start, and the line that refuses the others."""

from pathlib import Path

import pytest

from tests.unit.kernbench.cli.test_run import refusal, run_of


@pytest.fixture
def script(tmp_path: Path) -> str:
    file = tmp_path / "train.py"
    file.write_text("")
    return str(file)


@pytest.mark.parametrize("name", ["--nproc-per-node", "--nproc_per_node", "--sips"])
def test_the_number_of_ranks_is_given_as_to_torchrun(name: str, script: str):
    request = run_of("run", "--standalone", "--nnodes=1", name, "8", script, "--steps", "3")
    assert request.options.sips == 8
    assert request.script == Path(script)
    assert request.argv == ("--steps", "3")


def test_a_module_is_found_by_its_import_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "mine").mkdir()
    monkeypatch.chdir(tmp_path)
    request = run_of("--sips", "2", "-m", "mine.train", "-m", "--sips")
    assert (request.module, request.script) == ("mine.train", None)
    assert request.argv == ("-m", "--sips")


def test_a_script_for_gpus_is_marked(script: str):
    assert run_of("--sips", "2", "--as-cuda", script).as_cuda
    assert not run_of("--sips", "2", script, "--as-cuda").as_cuda


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ("--sips 4 --nproc-per-node 2 SCRIPT", "both are the number of ranks"),
        ("--nproc-per-node gpu SCRIPT", "expected the number of SIPs, got 'gpu'"),
        ("--nnodes 4 --nproc-per-node 8 SCRIPT", "--nnodes 4 --nproc-per-node 8 is --sips 32"),
        ("--rdzv_backend c10d SCRIPT", "--rdzv_backend of torchrun: all ranks of a run are on"),
        ("--max-restarts=3 SCRIPT", "a rank that fails ends the run"),
        ("--tee 3 SCRIPT", "redirect those"),
        ("--nproc-per-node 2", "--nproc-per-node is an option for a script"),
        ("--as-cuda --sips 2", "--as-cuda is an option for a script"),
        ("-m", "-m needs the name of a module"),
        ("-m nowhere.train", "there is no module 'nowhere'"),
        ("-m train.py", "a module is given without .py"),
    ],
)
def test_what_has_no_counterpart_is_refused_with_what_to_do(arguments: str, line: str, script: str):
    assert line in refusal(*arguments.replace("SCRIPT", script).split())
