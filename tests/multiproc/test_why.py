"""`why` of real runs: sums exact, no gap without explanation, predictions beside simulations."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kernbench.cli.main import main
from tests.support.runs import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.multiproc, pytest.mark.usefixtures("warm")]
ALL_REDUCE = ("--sips", "4", "--procs", "2", "--algorithm", "ring", "--warmup", "0")
LARGE = ("--min-bytes", "16384", "--max-bytes", "16384")
SMALL = ("--min-bytes", "256", "--max-bytes", "256")
"""Packets that meet no others: latencies are not hidden by queues."""
TP_BLOCK = ("--sips", "2", "--bench", "tp-attention-block")
Why = Callable[..., Any]


@pytest.fixture
def why(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Why:
    """Runs a bench, and explains the run as JSON."""

    def explained(*arguments: str, options: tuple[str, ...] = ()) -> Any:
        out = str(tmp_path / "run")
        assert main(["--out", out, "--verbose", *arguments]) == 0
        lines = capsys.readouterr().out.splitlines()
        # Five lines before the last one.
        assert [line.split()[0] for line in lines[-6:-1]] == [
            "time",
            "critical",
            "source",
            "busiest",
            "bound",
        ]
        assert main(["why", out, "--json", *options]) == 0
        return json.loads(capsys.readouterr().out)

    return explained


def check_sums(form: Any) -> None:
    """Parts, pieces and the times of PEs tile the run exactly, and records explain all of it."""
    total_ps = form["total_ps"]
    for rank in form["ranks"]:
        assert sum(rank[key] for key in rank if key.endswith("_ps")) == total_ps
    for pe in form["pes"]:
        parts = ("issue_ps", "compute_ps", "memory_ps", "communication_ps", "launch_ps")
        assert sum(pe[key] for key in parts) == pe["kernel_ps"]
    reached_ps = 0
    for piece in form["path"]["pieces"]:
        assert piece["begin_ps"] == reached_ps < piece["end_ps"]
        reached_ps = piece["end_ps"]
    assert reached_ps == total_ps
    assert form["path"]["unexplained_ps"] == 0
    assert form["bound"]["bound_ps"] <= total_ps


@pytest.mark.parametrize(
    "change",
    [
        "ucie.overhead_ns=16",
        pytest.param("cube.noc.router_overhead_ns=x0.5", marks=pytest.mark.nightly),
    ],
)
def test_an_all_reduce_is_explained_and_estimates_enclose_the_simulation_of_its_contended_slots(
    why: Why, change: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    form = why(*ALL_REDUCE, *LARGE)
    check_sums(form)
    sips = {piece["sip"] for piece in form["path"]["pieces"] if piece["kind"] == "communication"}
    # The blocks of a ring pass every rank.
    assert sips == {0, 1, 2, 3}
    assert main(["why", str(tmp_path / "run"), "--json", "--what-if", change]) == 0
    [change_of_time] = json.loads(capsys.readouterr().out)["what_if"]
    predicted_ps, simulated_ps = change_of_time["predicted_ps"], change_of_time["simulated_ps"]
    assert predicted_ps * simulated_ps > 0
    assert abs(change_of_time["absorbed_ps"]) < abs(simulated_ps) < abs(predicted_ps)


def test_a_tensor_parallel_block_is_explained(why: Why):
    form = why(*TP_BLOCK)
    check_sums(form)
    kinds = {each["name"] for each in form["path"]["by_kind"]}
    assert {"compute", "memory", "communication", "launch"} <= kinds


@pytest.mark.parametrize("options", [(), ("--prefill",)], ids=["decode", "prefill"])
def test_a_panel_of_grouped_query_attention_is_explained(why: Why, options: tuple[str, ...]):
    form = why("--sips", "1", str(ROOT / "examples" / "gqa_panel.py"), *options)
    check_sums(form)
    # Eight PEs in a ring, whose K and V, or partial results, come by messages.
    assert {(pe["cube"], pe["pe"]) for pe in form["pes"]} == {(0, pe) for pe in range(8)}
    assert all(pe["communication_ps"] > 0 for pe in form["pes"])
    lines = {share["name"].partition(":")[0] for share in form["path"]["by_line"]}
    assert {"examples/gqa_panel.py", "runtime/device/kernels/attention/online_softmax.py"} <= lines


@pytest.mark.parametrize(
    ("change", "tolerance"),
    [
        ("ucie.overhead_ns=4", 0.05),
        *(
            pytest.param(*each, marks=pytest.mark.nightly)
            for each in (
                ("sip.io_chiplet.pcie_ep.overhead_ns=50", 0.05),
                ("cube.noc.router_overhead_ns=x2", 0.05),
                ("sip.io_chiplet.io_cpu.launch_margin_ns=x2", 0.01),
            )
        ),
    ],
)
def test_a_prediction_is_near_the_simulation(why: Why, change: str, tolerance: float):
    [found] = why(*ALL_REDUCE, *SMALL, options=("--what-if", change))["what_if"]
    assert found["simulated_ps"] != 0
    assert found["predicted_ps"] == pytest.approx(found["simulated_ps"], rel=tolerance)


def test_copies_of_the_host_behind_each_other_come_at_the_rate_of_pcie(why: Why, tmp_path: Path):
    program = tmp_path / "copies.py"
    program.write_text(
        "import numpy as np\n"
        "from kernbench import torch\n"
        "copies = [torch.from_numpy(np.ones(1 << 15, np.float32)) for _ in range(4)]\n"
        "torch.ahbm.synchronize()\n"
    )
    options = ("--what-if", "sip.io_chiplet.pcie_ep.bw_gbs=128")
    [found] = why("--sips", "1", str(program), options=options)["what_if"]
    # 128 KiB take 2,048 ns at 64 GB/s; at 128 GB/s each copy ends with its own way.
    assert -4 * 1_024_000 < found["simulated_ps"] < -3 * 700_000
    assert found["predicted_ps"] == pytest.approx(found["simulated_ps"], rel=0.02)


@pytest.mark.nightly
def test_check_simulates_the_predictions_of_the_report(why: Why):
    found = why(*ALL_REDUCE, *SMALL, options=("--check",))["what_if"]
    assert len(found) == 5
    # Each of them saves time, as predicted.
    assert all(each["simulated_ps"] < 0 for each in found)


def test_a_simulation_of_another_machine_is_announced(
    why: Why, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    why("--sips", "1", str(ROOT / "examples" / "placement.py"))
    capsys.readouterr()
    assert main(["why", str(tmp_path / "run"), "--what-if", "hbm.pc_bw_gbs=x2"]) == 0
    printed = capsys.readouterr()
    *shown, simulating = printed.err.splitlines()
    assert simulating == "kernbench: note: simulating the run with hbm.pc_bw_gbs=64, 1 of 1"
    assert all("examples/placement.py" in line for line in shown)
    # Faster channels shorten it, by less than the whole of its time.
    *_, simulated_percent = printed.out.split()
    assert -100 < float(simulated_percent) < 0
