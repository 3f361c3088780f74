"""The tables of `why`."""

from pathlib import Path

from kernbench.explain.records import open_run
from kernbench.explain.why.explanation import explain
from kernbench.explain.why.kernel_times import KernelTime
from kernbench.explain.why.report import (
    explanation_lines,
    heading_lines,
    kernel_lines,
    prediction_lines,
)
from kernbench.explain.why.what_if import NumberChange, Prediction
from tests.support.hand_made_runs import one_kernel
from tests.support.run_tables import write_run


def lines(tmp_path: Path) -> list[str]:
    directory = write_run(tmp_path / "run", [one_kernel()], 1000)
    return [" ".join(line.split()) for line in explanation_lines(explain(open_run(directory)))]


def test_the_heading_has_the_program_and_the_error_of_a_failed_run(tmp_path: Path):
    arguments, error = {"min_bytes": 4}, "deadlock: x\nat y"
    directory = write_run(tmp_path / "run", [one_kernel()], 1000, arguments=arguments, error=error)
    first, *_, failed, cause, place, _ = heading_lines(open_run(directory))
    assert first.endswith(": hand-made --min-bytes 4")
    assert failed == "# the run failed; this is what it recorded until then:"
    assert (cause, place) == ("#   deadlock: x", "#   at y")


def test_tables_show_parts_path_load_and_bound(tmp_path: Path):
    found = lines(tmp_path)
    assert "0 1.000 0.050 5.0 0.650 65.0 0.000 0.0 0.300 30.0 0.000 0.0" in found
    assert "mean 0.700 0.009 0.047 0.644 0.000 0.000" in found
    assert "critical path: 16 pieces, 1.000 ns" in found
    assert "k.py:3 0.550 55.0 5" in found
    assert "0.354 0.400 memory sip0.cube2.pe1.pe_dma store k.py:3" in found
    assert "k 0.700 1 0.700 0.700 1" in found
    assert "sip0.cube2.pe1.pe_dma 0.634 63.4 0.006 2 0 61.9 0.000" in found
    assert (
        found[-1] == "bound at least 0.848 ns, 84.8 % of the run, in any order: "
        "the steps that wait for each other, without queues"
    )


def test_kernels_with_a_thousandth_of_the_time_are_shown():
    kernels = [KernelTime(name, 2, 8, time_ps, 600) for name, time_ps in (("a", 999), ("b", 1))]
    assert [line.split() for line in kernel_lines(kernels)][2:-1] == [
        ["a", "0.999", "2", "0.499", "0.600", "8"],
        ["b", "0.001", "2", "0.000", "0.600", "8"],
    ]
    assert len([*kernel_lines([*kernels, KernelTime("c", 1, 8, 0, 0)])]) == 5


def test_the_longest_piece_comes_first(tmp_path: Path):
    found = lines(tmp_path)
    at = found.index("longest pieces of the critical path (ns)")
    lengths = [float(line.split()[1]) for line in found[at + 2 : at + 18]]
    assert lengths == sorted(lengths, reverse=True)


def test_estimates_and_simulated_times_are_distinguished():
    change = NumberChange("ucie.overhead_ns", 8, 4)

    def shown(*predictions: Prediction, absorbed: bool = True) -> list[str]:
        found = prediction_lines(predictions, 10_000, absorbed=absorbed)
        return [" ".join(line.split()) for line in found][1:]

    assert shown(Prediction(change, -500, -500, -400)) == [
        "what if (ns): predicted is an estimate, simulated is exact",
        "# number before after predicted % simulated %",
        "ucie.overhead_ns 8 4 -0.500 -5.0 -0.400 -4.0",
    ]
    assert shown(Prediction(change, -500, -300)) == [
        "what if (ns): predicted is an estimate, --check simulates these machines",
        "# number before after predicted % absorbed %",
        "ucie.overhead_ns 8 4 -0.500 -5.0 -0.300 -3.0",
    ]
    assert shown(Prediction(change, -500, -300), absorbed=False)[1:] == [
        "# number before after predicted %",
        "ucie.overhead_ns 8 4 -0.500 -5.0",
    ]
