"""Eight kinds of program as users of PyTorch write them, with few lines changed.

A changed line has a comment `# PyTorch: ` with the line of the original; an empty comment marks a
line that the original does not have. The page docs/pytorch.md states how many there are.
"""

import ast
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from tests.support.runs import ROOT, kernbench
from tests.support.world import simulate

pytestmark = [pytest.mark.slow, pytest.mark.multiproc]

PROGRAMS = {
    "point_to_point": r"point to point: 2 ranks, all messages right",
    "nccl_tests": r"nccl-tests: 2 ranks, all results right",
    "megatron_mlp": r"Megatron MLP: 2 ranks, output and three gradients right",
    "attention": r"attention: 8 heads on 2 ranks, right",
    # The losses that the original prints on CPUs, with gloo on two ranks.
    "fsdp": r"FSDP loop: 2 ranks, losses 2\.0010 1\.8030 1\.6581 1\.5486",
    "pipeline": r"pipeline: 2 stages, 4 micro-batches, gradients right",
    "moe": r"mixture of experts: 2 experts, 48 tokens, right",
}
MARKED = re.compile(r"^(?P<indent>\s*)(?P<code>\S.*?)\s+# PyTorch:(?: (?P<original>.+))?$")


def _file(name: str) -> Path:
    return ROOT / "examples" / f"pytorch_{name}.py"


def _original(text: str) -> tuple[str, int]:
    """The program for PyTorch, and the number of lines that differ."""
    lines, changed = [], 0
    for line in text.splitlines():
        marked = MARKED.match(line)
        changed += marked is not None
        if marked is None:
            lines.append(line)
        elif marked["original"] is not None:
            lines.append(f"{marked['indent']}{marked['original']}")
    return "\n".join(lines), changed


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_of_pytorch_checks_its_own_results_and_gives_in_two_processes_what_one_gives(
    name: str, tmp_path: Path
):
    run = kernbench(tmp_path / "run", "--sips", "2", str(_file(name)))
    assert run.code == 0, run.err
    assert re.search(rf"^{PROGRAMS[name]}$", run.out, re.MULTILINE), run.out
    module = import_module(f"examples.pytorch_{name}")
    alone = simulate(lambda _: module.main(), 2)
    assert tuple(rank["digest"] for rank in run.report["ranks"]) == alone.digests


def test_a_program_that_spawns_its_ranks_runs_with_python():
    done = subprocess.run(
        [sys.executable, str(_file("spawn")), "3"],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "spawn: 3 ranks of env:// agree\n"), done.stderr


@pytest.mark.parametrize("name", [*PROGRAMS, "spawn"])
def test_the_page_states_how_many_lines_differ_from_the_original(name: str):
    original, changed = _original(_file(name).read_text(encoding="utf-8"))
    page = (ROOT / "docs" / "pytorch.md").read_text(encoding="utf-8")
    lines = re.search(rf"/pytorch_{name}\.py\)\s+\((\d+)\s+of\s+(\d+)\)", page)
    assert lines is not None
    assert (int(lines[1]), int(lines[2])) == (changed, len(original.splitlines()))
    # Without its marks it is a program for PyTorch, in which nothing is of kernbench.
    imported = [
        alias.name
        for node in ast.walk(ast.parse(original))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    ]
    assert "torch.distributed" in imported
    program = original.partition('"""\n')[2]
    assert not re.search(r"kernbench|runtime|ahbm", program.partition('"""\n')[2] or program)
