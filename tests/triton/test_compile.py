"""`torch.compile` without a backend's name: generated kernels on PEs, with the eager results."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.triton.test_programs import PROGRAMS, ROOT

pytestmark = [pytest.mark.slow, pytest.mark.multiproc, pytest.mark.timeout(600)]


def output(out: Path, program: str, *arguments: str, **environment: str) -> str:
    pytest.importorskip("torch", reason="PyTorch is not installed: make setup-torch")
    done = subprocess.run(
        [
            *(sys.executable, "launch.py", "--sips", "1", "--timeout", "500", "--out", str(out)),
            *(str(PROGRAMS / program), *arguments),
        ],
        cwd=ROOT,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert "leaked" not in done.stderr
    assert "has not exited" not in done.stderr
    return done.stdout


def test_compiled_functions_have_eager_results_in_fewer_launches(tmp_path: Path):
    text = output(tmp_path / "run", "compiled.py")
    shown = dict(re.findall(r"^= ([^:]+): (.*)", text, re.MULTILINE))
    assert len(shown) == 16
    assert all(each.startswith("equal True") for each in shown.values())
    # gelu(x * 2 + w).sum(-1) is one kernel.
    assert shown["fused"] == "equal True, 4 launches, 1"
    # Each product is a launch, with the functions behind it.
    assert shown["epilogue"] == "equal True, 4 launches, 2"
    before, after = map(int, re.findall(r"\d+", shown["training"]))
    assert after <= 0.65 * before
    assert re.search(
        r"^autotune: triton_\w+: XBLOCK=\d+: [\d,.]+ ns, the fastest", text, re.MULTILINE
    )
    (line,) = re.findall(r"^rank 0: torch.compile: .*", text, re.MULTILINE)
    assert "graphs that run as operators: 1 (" in line
    assert "has elements of type int16: 1)" in line


def test_without_triton_the_error_names_the_installation(tmp_path: Path):
    text = output(tmp_path / "run", "compiled_without_triton.py")
    (error,) = re.findall(r"^= error (.*)", text, re.MULTILINE)
    assert "torch.compile on 'ahbm' without a backend's name generates Triton kernels" in error
    assert "make setup-triton, or pip install 'kernbench[triton]'" in error
    assert "= aot_eager [3.0, 3.0, 3.0, 3.0]" in text


def hbm_bytes(run: Path) -> int:
    """The bytes that the kernels of a run load and store."""
    columns = ["engine", "name", "nbytes"]
    rows = pq.read_table(run / "records" / "sip0.ops.parquet", columns=columns).to_pylist()
    moves = {"load", "gather", "store"}
    return sum(row["nbytes"] for row in rows if row["engine"] == "pe_dma" and row["name"] in moves)


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["gpt", "llama"])
def test_an_example_trains_with_half_of_the_launches_and_of_the_bytes(tmp_path: Path, name: str):
    steps = {
        form: re.findall(
            r"^= \d ([\d.]+) (\d+) [\d.]+ (\d+) ",
            output(tmp_path / form, "compiled_examples.py", name, form),
            re.MULTILINE,
        )
        for form in ("eager", "compiled")
    }
    eager, compiled = steps["eager"], steps["compiled"]
    assert len(eager) == len(compiled) == 5
    for (expected, *_), (loss, *_) in zip(eager, compiled, strict=True):
        assert float(loss) == pytest.approx(float(expected), rel=1e-4)
    for part in (1, 2):
        # Both forms initialise the optimiser in the first step.
        before, after = (sum(int(each[part]) for each in step[1:]) for step in (eager, compiled))
        assert after <= before / 2
    assert hbm_bytes(tmp_path / "compiled") <= 0.6 * hbm_bytes(tmp_path / "eager")


@pytest.mark.nightly
def test_hash_seeds_and_caches_change_no_digest(tmp_path: Path):
    digests = list[str]()
    for seed, cache in (("1", "a"), ("2", "a"), ("3", "b")):
        text = output(
            tmp_path / f"run {seed}",
            *("compiled_examples.py", "gpt", "compiled", "1"),
            PYTHONHASHSEED=seed,
            TORCHINDUCTOR_CACHE_DIR=str(tmp_path / cache),
        )
        digests += re.findall(r"^digest +(\w+)", text, re.MULTILINE)
    assert len(digests) == 3
    assert len(set(digests)) == 1
