"""`--verify-data`: the coordinator replays the logs of all processes."""

from pathlib import Path

import pytest

from tests.support.runs import Run, kernbench
from tests.support.topologies import variant_text

pytestmark = [pytest.mark.multiproc, pytest.mark.slow]

SMALL = ("--sips", "2", "--min-bytes", "256", "--max-bytes", "256")


def topology(directory: Path, **changes: object) -> str:
    file = directory / "topology.yaml"
    file.write_text(variant_text(sip__cube_mesh={"w": 2, "h": 2}, **changes))
    return str(file)


def summary(run: Run) -> str:
    (line,) = (line for line in run.out.splitlines() if line.startswith("verify-data"))
    return line


def test_a_right_run_passes_for_every_number_of_processes_and_its_digest_is_the_same(
    tmp_path: Path,
) -> None:
    words = (*SMALL, "--topology", topology(tmp_path))
    plain = kernbench(tmp_path / "plain", *words)
    packed = kernbench(tmp_path / "packed", *words, "--procs", "1", "--verify-data")
    spread = kernbench(tmp_path / "spread", *words, "--verify-data")
    assert (plain.code, packed.code, spread.code) == (0, 0, 0), spread.err
    assert summary(packed) == summary(spread)
    assert summary(spread).endswith("compared: every bit equal  OK")
    assert plain.report["verification"] is None
    assert {run.report["digest"] for run in (plain, packed, spread)} == {plain.report["digest"]}
    found = spread.report["verification"]
    assert (found["passed"], found["problems"]) == (True, [])
    assert found["operations"] > 0
    assert [memory["memory"] for memory in found["memories"]] == ["hbm", "tcm"]
    assert all(memory["buffers"] and memory["elements"] for memory in found["memories"])


def test_a_script_is_verified_too(tmp_path: Path) -> None:
    script = tmp_path / "double.py"
    script.write_text(
        "from runtime import tl, torch\n"
        "def double(x):\n"
        "    tl.store(x, tl.load(x, 64) * 2)\n"
        "x = torch.ones(64)\n"
        "torch.launch('double', double, x)\n"
        "assert (x.numpy() == 2).all()\n"
    )
    run = kernbench(
        tmp_path / "run",
        "--sips",
        "2",
        "--topology",
        topology(tmp_path),
        "--verify-data",
        str(script),
    )
    assert run.code == 0, run.err
    # Each of the two ranks makes a block, stores it, loads, doubles, stores and reads once.
    assert summary(run).startswith("verify-data     12 operations replayed, ")


@pytest.mark.parametrize(
    ("kind", "component"), [("pe_math", "WrongMath"), ("pe_dma", "DroppingDma")]
)
def test_a_wrong_component_fails_the_run_and_is_named(
    kind: str, component: str, tmp_path: Path
) -> None:
    file = topology(tmp_path, impl={kind: f"tests.support.wrong_components:{component}"})
    run = kernbench(tmp_path / "run", *SMALL, "--topology", file, "--verify-data")
    assert run.code == 1
    assert summary(run).endswith("compared: FAILED")
    assert run.report["passed"] is False
    operation, buffer = run.report["verification"]["problems"]
    assert " its result has the checksum 0x" in operation
    assert ", replayed it is [" in operation
    assert " differ; element " in buffer
    assert all(problem in run.out for problem in (operation, buffer))


def test_without_data_there_is_nothing_to_verify(tmp_path: Path) -> None:
    run = kernbench(tmp_path / "run", *SMALL, "--no-data", "--verify-data")
    assert run.code == 2
    assert run.err.splitlines() == [
        (
            "kernbench: error: --verify-data with --no-data: a run without data has no results"
            " to verify"
        )
    ]
