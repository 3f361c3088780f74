"""The command line of `kernbench sweep`: what it requests, and what it refuses in one line."""

from pathlib import Path

import pytest

from kernbench.benches import load_bench, load_entries
from kernbench.cli.main import call, main
from kernbench.command.options import CliContext
from kernbench.points.driver import PointOptions
from kernbench.points.task import Limits
from kernbench.sweep.request import FigureRequest, SweepRequest


def requested(*arguments: str) -> object:
    requests: list[object] = []
    context = CliContext(load_entries, lambda request: requests.append(request) or 0, load_bench)
    assert call(["sweep", *arguments], context) == 0
    return requests[0]


def sweep_of(*arguments: str) -> SweepRequest:
    request = requested(*arguments)
    assert isinstance(request, SweepRequest)
    return request


def names(request: SweepRequest) -> list[str]:
    return [str(point) for point in request.points]


def test_a_sweep_of_keys_flags_and_sips_has_all_combinations():
    request = sweep_of(
        *("ccl-allreduce", "--set", "dma.channels=2,4", "--sips", "2,3"),
        *("--arg", "--min-bytes=256,512", "--arg", "--max-bytes=512"),
    )
    assert names(request) == [
        f"dma.channels={channels} --min-bytes={size} --sips={sips}"
        for channels in (2, 4)
        for size in (256, 512)
        for sips in (2, 3)
    ]
    assert request.measurement.program.arguments["max_bytes"] == 16384
    assert [each.name for each in request.measurement.fixed] == ["--max-bytes"]


def test_a_zip_pairs_values():
    request = sweep_of(
        *("ccl-allreduce", "--zip", "--set", "ucie.bw_gbs=64..256..x2"),
        *("--set", "dma.channels=2..4"),
    )
    assert names(request) == [
        "ucie.bw_gbs=64 dma.channels=2",
        "ucie.bw_gbs=128 dma.channels=3",
        "ucie.bw_gbs=256 dma.channels=4",
    ]


def test_a_bench_is_found_by_its_number_as_well():
    number = [entry.name for entry in load_entries()].index("ccl-allreduce") + 1
    request = sweep_of(str(number), "--set", "dma.channels=2,4")
    assert request.measurement.program.name == "ccl-allreduce"


def test_arguments_after_the_script_are_in_every_point(tmp_path: Path):
    script = tmp_path / "train.py"
    script.touch()
    request = sweep_of(str(script), "--arg", "--steps=1,2", "--arg", "--fast", "--", "adam", "-v")
    program = request.measurement.plan(request.points[0]).program
    assert (program.kind, program.path) == ("script", str(script))
    assert program.argv == ("adam", "-v", "--fast", "--steps=1")


def test_a_module_is_swept_as_a_script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my_training.py").touch()
    program = sweep_of("-m", "my_training", "--arg", "--steps=1,2").measurement.program
    assert (program.kind, program.path) == ("module", "my_training")


def test_options_of_points_are_those_of_studies():
    request = sweep_of(
        *("ccl-allreduce", "--set", "dma.channels=2,4", "--procs", "3", "--on", "dask:host:1"),
        *("--timeout", "5", "--resume", "--out", "dir", "--point-timeout", "7"),
        *("--point-memory", "2G", "--no-data", "--metric", "algbw_gbs@256", "--plot", "curve"),
    )
    assert request.options == PointOptions("dask:host:1", 3, 5.0, True, Limits(7.0, 2 << 30))
    assert request.out == Path("dir")
    assert not request.measurement.data
    assert (request.description.metric, request.description.plot) == ("algbw_gbs@256", "curve")


def test_the_figure_is_drawn_again_by_its_directory():
    assert requested("--from", "dir") == FigureRequest(Path("dir"))
    assert requested("--from", "dir", "--metric", "x", "--plot", "pareto") == FigureRequest(
        Path("dir"), "x", "pareto"
    )


KEYS = "ccl-allreduce --set ucie.bw_gbs=64,128"


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ("", "sweep: which program? a bench, FILE.py, or -m MODULE; see --help"),
        ("ccl-allreduce", "sweep: nothing is swept: give a key or an argument two values or more"),
        ("ccl-alreduce --set channels=1,2", "sweep: unknown bench 'ccl-alreduce'; did you mean"),
        ("absent.py --set channels=1,2", "sweep: no such script: 'absent.py'"),
        ("-m absent --set channels=1,2", "sweep: -m absent: there is no module 'absent'"),
        ("milestone-1h-gemm --set channels=1,2", "sweep: milestone-1h-gemm is a study"),
        ("ccl-allreduce 5 --set channels=1,2", "sweep: '5': the flags of a bench are given by"),
        ("ccl-allreduce --as-cuda --set channels=1,2", "sweep: --as-cuda is an option for a scri"),
        ("ccl-allreduce --set ucie.bw=64,128", "sweep: --set ucie.bw: no key of topology.yaml or"),
        ("ccl-allreduce --set bw_gbs=64,128", "sweep: --set bw_gbs: the end of 6 keys: ucie.bw_g"),
        ("ccl-allreduce --set channels=8..2", "sweep: --set channels=8..2: 8..2 is empty, 8 is m"),
        ("ccl-allreduce --set channels=", "sweep: --set channels=: no value; expected"),
        ("ccl-allreduce --set channels=2,0", "--set channels=0: pe.dma.channels: should be great"),
        (f"{KEYS} --set ucie.bw_gbs=3,4", "sweep: ucie.bw_gbs is given twice"),
        (f"{KEYS} --zip --set channels=1,2,3", "sweep: --zip needs as many values for each: ucie"),
        (f"{KEYS} --arg --sizes=1,2", "sweep: --arg --sizes: ccl-allreduce has no such flag"),
        (f"{KEYS} --arg --min-bytes=1,b", "sweep: --arg --min-bytes=b: expected an integer"),
        (f"{KEYS} --arg --dtype=float32,f4", "sweep: ucie.bw_gbs=64 --dtype=f4: unknown dtype"),
        (
            f"{KEYS} --set hbm.num_pcs=1..1000 --arg --min-bytes=1..10",
            "sweep: 20,000 points; a sweep has at most 10,000",
        ),
        (f"{KEYS} --sips 0", "sweep: --sips=0: expected an integer of at least 1, got '0'"),
        (f"{KEYS} --set pe.tcm_mb=4", "topology.yaml with pe.tcm_mb=4 ucie.bw_gbs=64: pe.tcm_mb"),
        (
            "ccl-allreduce --sips 2,3 --set system.sips.topology=torus_2d",
            "topology.yaml with system.sips.topology=torus_2d --sips=2: system.sips.count: torus",
        ),
        (
            f"{KEYS} --set defaults.world_size=2,9",
            "ccl.yaml with defaults.world_size=9: defaults.world_size: is 9, but --sips is 2",
        ),
        (f"{KEYS} --resume", "sweep: --resume needs --out DIR, the directory of the sweep"),
        (f"{KEYS} --plot heatmap", "sweep: --plot heatmap: it needs 2 swept keys, not 1"),
        (f"{KEYS} --plot pareto", "sweep: --plot pareto: it needs 2 metrics, not 1"),
        (f"{KEYS} --plot pie", "sweep: --plot: 'pie' is not one of 'auto', 'curve', 'heatmap'"),
        (f"{KEYS} --sett a=1", "sweep: unknown option '--sett'; did you mean '--set'?"),
        (f"{KEYS} --from dir", "sweep: ccl-allreduce with --from, which simulates nothing"),
        ("--from dir --set a=1,2", "sweep: --set with --from, which simulates nothing"),
    ],
)
def test_a_wrong_sweep_is_one_line_and_exit_code_2_before_the_first_point(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: str,
    problem: str,
):
    monkeypatch.chdir(tmp_path)
    assert main(["sweep", *arguments.split()]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith(f"kernbench: error: {problem}")
    assert printed.err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_the_help_lists_the_options(capsys: pytest.CaptureFixture[str]):
    assert main(["sweep", "--help"]) == 0
    text = capsys.readouterr().out
    for option in ("--set", "--arg", "--zip", "--on", "--resume", "--metric", "--plot", "--from"):
        assert option in text
