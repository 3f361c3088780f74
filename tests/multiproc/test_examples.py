"""Examples and benches check their own results, on any number of PEs and in real processes."""

import re
from pathlib import Path

import pytest

from examples import fused_gemm, overlap, softmax, tensor_parallel, tensor_parallel_mlp
from tests.support.runs import ROOT, kernbench
from tests.support.world import simulate

pytestmark = [pytest.mark.slow, pytest.mark.multiproc]

EXAMPLES = {"softmax": softmax.run, "fused_gemm": fused_gemm.run}
SMALL = {
    "congestion": ("--size", "4096"),
    "gemm-single-pe": ("--m", "48", "--n", "40", "--k", "100", "--bias", "--activation", "gelu"),
    "qkv-gemm": ("--scale", "128", "--seq", "20", "--pes", "2"),
    "qkv-gemm-multi-pe": ("--scale", "96", "--seq", "20", "--cubes", "2", "--pes", "4"),
    "va-offset-verify": ("--columns", "100", "--cubes", "2", "--pes", "4"),
}


@pytest.mark.parametrize("name", EXAMPLES)
@pytest.mark.parametrize(("cubes", "pes"), [(1, 1), (1, 8), (16, 8)])
def test_an_example_is_right_on_one_pe_on_a_cube_and_on_a_sip(
    name: str, cubes: int, pes: int, capsys: pytest.CaptureFixture[str]
):
    simulate(lambda rank: EXAMPLES[name](cubes, pes), 1)
    assert re.fullmatch(
        rf"rank 0: .* float16, PEs: {cubes * pes}, right to one rounding, [\d,]+\.\d+ ns\n",
        capsys.readouterr().out,
    )


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_gives_in_two_processes_what_it_gives_in_one(name: str, tmp_path: Path):
    run = kernbench(
        tmp_path / "run",
        "--sips",
        "2",
        str(ROOT / "examples" / f"{name}.py"),
        "--cubes",
        "2",
        "--pes",
        "2",
    )
    assert run.code == 0, run.err
    assert sorted(re.findall(r"^rank (\d): .* right to one rounding", run.out, re.MULTILINE)) == [
        "0",
        "1",
    ]
    alone = simulate(lambda rank: EXAMPLES[name](2, 2), 2)
    assert tuple(rank["digest"] for rank in run.report["ranks"]) == alone.digests


def test_overlap_takes_less_time_and_gives_in_two_processes_what_it_gives_in_one(tmp_path: Path):
    run = kernbench(
        tmp_path / "run", "--sips", "2", "--verify-data", str(ROOT / "examples" / "overlap.py")
    )
    assert run.code == 0, run.err
    lines = re.findall(
        r"^rank (\d): 4 layers, ([\d,.]+) ns, with overlap ([\d,.]+) ns$", run.out, re.MULTILINE
    )
    assert sorted(rank for rank, _, _ in lines) == ["0", "1"]
    assert all(
        float(overlapped.replace(",", "")) < float(apart.replace(",", ""))
        for _, apart, overlapped in lines
    )
    alone = simulate(lambda rank: overlap.run(), 2)
    assert tuple(rank["digest"] for rank in run.report["ranks"]) == alone.digests


@pytest.mark.parametrize(("sips", "size"), [(2, 2), (4, 2)])
def test_a_hand_written_backward_pass_gives_the_weights_of_float64(
    sips: int, size: int, capsys: pytest.CaptureFixture[str]
):
    simulate(lambda rank: tensor_parallel.run(size), sips)
    expected = f": 2 steps, {sips // size} x {size} ranks, weights and dx equal to float64, "
    assert capsys.readouterr().out.count(expected) == sips


def test_the_program_of_the_tutorial_checks_its_closed_form(capsys: pytest.CaptureFixture[str]):
    simulate(tensor_parallel_mlp.main, tensor_parallel_mlp.RANKS)
    assert capsys.readouterr().out.startswith("y of (4, 16): [0.03")


def test_the_backward_pass_gives_in_two_processes_what_it_gives_in_one(tmp_path: Path):
    script = str(ROOT / "examples" / "tensor_parallel.py")
    run = kernbench(tmp_path / "run", "--sips", "2", script)
    assert run.code == 0, run.err
    alone = simulate(lambda rank: tensor_parallel.run(), 2)
    assert tuple(rank["digest"] for rank in run.report["ranks"]) == alone.digests


@pytest.mark.parametrize("name", EXAMPLES)
def test_without_data_an_example_reports_an_unchecked_result_and_takes_the_same_time(
    name: str, capsys
):
    lines = []
    for data in (True, False):
        simulate(lambda rank: EXAMPLES[name](1, 2), 1, data=data)
        lines.append(capsys.readouterr().out)
    assert lines[1] == lines[0].replace("right to one rounding", "not checked") != lines[0]


@pytest.mark.parametrize("bench", SMALL)
def test_a_bench_gives_one_digest_in_one_process_and_in_two(bench: str, tmp_path: Path):
    words = ("--bench", bench, "--sips", "2", *SMALL[bench])
    alone = kernbench(tmp_path / "alone", *words, "--procs", "1")
    many = kernbench(tmp_path / "many", *words, "--procs", "2")
    assert (alone.code, many.code) == (0, 0), alone.err + many.err
    assert alone.report["digest"] == many.report["digest"]
    assert _answer(alone.out) == _answer(many.out)
    assert re.search(rf"^{bench.replace('-', '_')} \(ws=2\): \d+ OK$", many.out, re.MULTILINE)


def test_a_wrong_flag_of_a_bench_is_one_line(tmp_path: Path):
    run = kernbench(
        tmp_path / "run", "--bench", "gemm-single-pe", "--sips", "2", "--staging", "load"
    )
    assert run.code == 2
    assert (
        run.err.splitlines()[-1]
        == "kernbench: error: --staging: 'load' is not known; did you mean 'load_ref'?"
    )
    assert "Traceback" not in run.err


def _answer(printed: str) -> list[str]:
    """The pass line and the table, which do not depend on wall time."""
    lines = printed.splitlines()
    end = next(number for number, line in enumerate(lines) if line.startswith("simulated time"))
    return lines[2:end]


def test_a_large_product_is_checked_and_not_traced_on_request(tmp_path: Path):
    script = str(ROOT / "examples" / "large_matmul.py")
    run = kernbench(tmp_path / "run", "--sips", "1", "--no-trace", script, "--size", "96")
    assert run.code == 0, run.err
    assert "of the peak, equal to numpy" in run.out
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["run.json"]


def test_the_products_of_a_layer_take_no_less_than_their_bounds(tmp_path: Path):
    run = kernbench(
        tmp_path / "run",
        "--sips",
        "2",
        "--no-data",
        str(ROOT / "examples" / "llama_layer.py"),
        "decode",
        "--context",
        "64",
        "--scale",
        "8",
    )
    assert run.code == 0, run.err
    # The lines behind the digest are about the whole run.
    products = run.out.partition("\ndigest ")[0]
    lines = re.findall(r"([\d,.]+) ns, +([\d,.]+)", products)
    # Six products of a rank, and their sums.
    assert len(lines) == 7
    for taken, bound in lines:
        assert float(taken.replace(",", "")) >= float(bound.replace(",", ""))
