"""The command line: which request its arguments make, and which line refuses wrong ones."""

from pathlib import Path
from typing import Any

import pytest

from kernbench.cli.main import call
from kernbench.cli.run import StudyRequest
from kernbench.command.entries import find_entry
from kernbench.command.options import CliContext, SimulationOptions
from kernbench.command.run_request import RunRequest
from kernbench.measure.collectives.arguments import PerfRequest
from runtime.core.bench_registry import Bench, Flag, Study, StudyOptions
from runtime.core.errors import UsageError


def _bench(name: str, *flags: Flag) -> Bench:
    return Bench(name, f"what {name} does", f"benches.{name}:run", flags, lambda rank: None)


BENCHES = (
    _bench(
        "ccl-allreduce",
        Flag("algorithm", str, "", "algorithm of ccl.yaml"),
        Flag("n_elem", int, 256, "elements"),
        Flag("check", bool, True, "compare with the sum"),
    ),
    _bench("copy", Flag("sweep", float, 1.5, "")),
    Study("sizes", "what sizes does", (Flag("depth", int, 3, "levels"),), lambda options: True),
)


def requests_of(*arguments: str) -> list[Any]:
    """Requests that the command would execute."""
    requests: list[Any] = []

    def execute(request: Any) -> int:
        requests.append(request)
        return 0

    assert call(arguments, CliContext(lambda: BENCHES, execute)) == 0
    return requests


def refusal(*arguments: str) -> str:
    with pytest.raises(UsageError) as caught:
        requests_of(*arguments)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def run_of(*arguments: str) -> RunRequest:
    [request] = requests_of(*arguments)
    assert isinstance(request, RunRequest)
    return request


def test_without_arguments_the_default_bench_runs_with_the_defaults_of_its_flags():
    flags = {"algorithm": "", "n_elem": 256, "check": True}
    assert run_of() == RunRequest(SimulationOptions(), bench=BENCHES[0], flags=flags)


@pytest.mark.parametrize(
    "arguments",
    [
        ["--sips", "4", "--procs", "2"],
        ["--sips=4", "--procs=2"],
        ["run", "--sips=4", "--procs", "2"],
    ],
)
def test_a_value_follows_its_option_or_an_equals_sign(arguments: list[str]):
    options = run_of(*arguments).options
    assert (options.sips, options.procs) == (4, 2)


def test_verification_is_an_option():
    assert run_of("--verify-data").options.verify_data
    assert not run_of().options.verify_data


def test_a_run_is_traced_unless_that_is_switched_off():
    assert run_of().options.trace
    assert not run_of("--no-trace").options.trace


def test_flags_of_the_bench_are_options_after_its_name():
    assert run_of("--bench", "copy", "--sweep", "2.5").flags == {"sweep": 2.5}


def test_flags_of_a_bench_may_come_before_its_name():
    assert run_of("--sweep", "2.5", "--sips=2", "--bench=copy").flags == {"sweep": 2.5}


def test_a_flag_may_have_the_name_of_a_part_of_the_command_line():
    bench = _bench("ccl-allreduce", *(Flag(name, int, 5, "") for name in ("script", "flags")))
    requests: list[RunRequest] = []
    context = CliContext(lambda: (bench,), lambda request: requests.append(request) or 0)
    assert call(["--script", "6"], context) == 0
    assert requests[0].flags == {"script": 6, "flags": 5}


def test_a_flag_with_the_name_of_an_option_is_refused():
    bench = _bench("mine", Flag("procs", int, 5, ""))
    with pytest.raises(UsageError, match=r"^mine has a flag with the name of the option --procs$"):
        call(["--bench", "mine"], CliContext(lambda: (*BENCHES, bench), lambda request: 0))


def test_flags_of_the_default_bench_need_no_name():
    assert run_of("--algorithm", "ring", "--n-elem=8", "--no-check").flags == {
        "algorithm": "ring",
        "n_elem": 8,
        "check": False,
    }


def test_a_bench_is_found_by_number():
    assert find_entry("2", lambda: BENCHES).name == "copy"


def test_everything_after_a_script_belongs_to_the_script(tmp_path: Path):
    script = tmp_path / "train.py"
    script.touch()
    argv = ("--sips", "9", "list", "--", "--help", "--bench")
    request = run_of("--sips", "2", str(script), *argv)
    assert request == RunRequest(SimulationOptions(sips=2), script=script, argv=argv)


def test_after_two_dashes_comes_a_script_of_any_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    Path("list").touch()
    assert run_of("--", "list", "--x").script == Path("list")


@pytest.mark.parametrize("arguments", [["list"], ["--list"]])
def test_the_benches_are_listed_by_command_and_by_option(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
):
    assert requests_of(*arguments) == []
    assert [line.split()[:2] for line in capsys.readouterr().out.splitlines()] == [
        ["1", "ccl-allreduce"],
        ["2", "copy"],
        ["3", "sizes"],
    ]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--sisp", "4"], "unknown option '--sisp'; did you mean '--sips'?"),
        (["--algoritm", "ring"], "unknown option '--algoritm'; did you mean '--algorithm'?"),
        (["--bench", "copy", "--swep=1"], "unknown option '--swep'; did you mean '--sweep'?"),
        (["-sips", "4"], "unknown option '-sips'; did you mean '--sips'?"),
        (["--bench", "coy"], "unknown bench 'coy'; did you mean 'copy'?"),
        (["--bench", "4"], "--bench 4: benches have numbers from 1 to 3, see --list"),
        (["--sip", "4"], "unknown option '--sip'; did you mean '--sips'?"),
        (
            ["--no-sweep", "--bench", "copy"],
            "unknown option '--no-sweep'; did you mean '--sweep'?",
        ),
        (["--sips", "2", "run"], "the command 'run' comes before the options"),
        (["lst"], "unknown command 'lst'; did you mean 'list'?"),
        (["missing/train.py"], "no such script: 'missing/train.py'"),
        (["--sips", "0"], "--sips: expected an integer of at least 1, got '0'"),
        (["--procs", "two"], "--procs: expected an integer of at least 1 or 'auto', got 'two'"),
        (["--procs", "0"], "--procs: expected an integer of at least 1 or 'auto', got '0'"),
        (["--procs", "auto "], "--procs: expected an integer of at least 1 or 'auto', got 'auto '"),
        (["--timeout", "nan"], "--timeout: expected a number of at least 0, got 'nan'"),
        (["--n-elem", "x"], "--n-elem: expected an integer, got 'x'"),
        (["--sips"], "--sips needs a value"),
        (["--no-data=1"], "--no-data takes no value, got '1'"),
        (["--check=yes"], "--check takes no value, got 'yes'"),
        (["--no-algorithm"], "unknown option '--no-algorithm'; did you mean '--algorithm'?"),
        (
            ["--algorithm", "ring", "--bench", "copy"],
            "--algorithm is not an option of the bench copy",
        ),
    ],
)
def test_a_wrong_argument_is_refused_in_one_line_with_the_nearest_right_one(
    arguments: list[str], problem: str
):
    assert refusal(*arguments) == problem


def test_a_script_takes_no_options_of_a_bench(tmp_path: Path):
    script = tmp_path / "train.py"
    script.touch()
    assert "either a bench or a script" in refusal("--bench", "copy", str(script))
    assert "'list' takes no argument" in refusal("list", str(script))


@pytest.mark.parametrize("option", ["--help", "-h"])
def test_the_help_shows_every_option_in_its_group_and_the_flags_of_the_bench(
    option: str, capsys: pytest.CaptureFixture[str]
):
    assert requests_of("--sips", "2", option) == []
    text = capsys.readouterr().out
    for part in (
        "what runs:",
        "--sips N",
        "--procs P",
        "--jitter-ms MS",
        "--out DIR",
        "examples:",
        "train.py --steps 10",
    ):
        assert part in text
    for part in (
        "flags of ccl-allreduce:",
        "--n-elem N",
        "[default: 256]",
        "--check / --no-check",
        "[default: check]",
    ):
        assert part in text


def test_the_help_shows_the_flags_of_the_bench_that_is_named(capsys: pytest.CaptureFixture[str]):
    assert requests_of("--help", "--bench", "copy") == []
    text = capsys.readouterr().out
    assert "--sweep X" in text
    assert "--n-elem" not in text


def test_the_help_is_shown_even_if_other_arguments_are_wrong(capsys: pytest.CaptureFixture[str]):
    assert requests_of("--sips", "0", "--help", "--bench", "sizes") == []
    text = capsys.readouterr().out
    assert "flags of sizes:" in text
    assert "--jitter-ms" not in text


def test_a_study_takes_its_flags_and_the_options_of_studies():
    [request] = requests_of("--bench", "sizes", "--depth", "4", "--procs", "2", "--out", "x")
    options = StudyOptions(procs=2, timeout_s=600.0, out=Path("x"), changed=("--depth",))
    assert request == StudyRequest(BENCHES[2], options, {"depth": 4})
    assert refusal("--bench", "sizes", "--jitter-ms", "0") == (
        "--jitter-ms is not an option of the study sizes"
    )
    # A flag with its default has not changed, given or not.
    [request] = requests_of("--timeout", "7", "--bench", "sizes", "--depth", "3")
    assert request.options == StudyOptions(timeout_s=7.0)


def perf_of(*arguments: str) -> PerfRequest:
    [request] = requests_of(*arguments)
    assert isinstance(request, PerfRequest)
    return request


@pytest.mark.parametrize(
    "arguments",
    [
        ["perf", "all_reduce", "-n", "2", "--sips", "4", "--out=x", "--no-data"],
        ["--sips", "4", "--out=x", "--no-data", "perf", "all_reduce", "-n", "2"],
        ["--no-data", "perf", "--sips=4", "all_reduce", "-n", "2", "--out", "x"],
    ],
)
def test_options_of_every_simulation_come_before_perf_or_after_it(arguments: list[str]):
    request = perf_of(*arguments)
    assert request.options == SimulationOptions(sips=4, data=False, out=Path("x"))
    assert request.parameters.iters == 2


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--out", "perf", "all_reduce"], "unknown command 'all_reduce'"),
        (["train.py", "perf"], "no such script: 'train.py'"),
        (["--", "perf"], "the command 'perf' comes before the options"),
        (["--sisp", "4", "perf"], "unknown option '--sisp'; did you mean '--sips'?"),
        (["run", "perf"], "the command 'perf' comes before the options"),
        (["--sips", "4", "probe"], "the command 'probe' comes before the options"),
        (["--algorithm", "ring", "train.py"], "either a bench or a script: 'train.py'"),
        (["--algorithm", "ring", "--", "x.py"], "either a bench or a script: 'x.py'"),
        (["--sips", "2", "--bench", "sizes"], "--sips is not an option of the study sizes"),
        (["--bench", "sizes", "--n-elem", "2"], "--n-elem is not an option of the study sizes"),
        (["perf", "-n"], "perf: -n needs a value"),
        (["list", "--sips", "2"], "list: unknown option '--sips'"),
    ],
)
def test_what_is_no_command_and_no_option_is_refused(arguments: list[str], problem: str):
    assert refusal(*arguments).startswith(problem)


def test_processes_by_cores_are_the_choice_of_a_study_anyway():
    assert run_of("--procs", "auto").options.procs == "auto"
    [request] = requests_of("--bench", "sizes", "--procs", "auto")
    assert request.options.procs is None


def test_an_option_behind_a_script_is_named_as_an_argument_of_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    script = tmp_path / "train.py"
    script.touch()
    (request,) = requests_of("--sips", "2", str(script), "--sips=4", "--steps", "3")
    assert request.argv == ("--sips=4", "--steps", "3")
    (line,) = capsys.readouterr().err.splitlines()
    assert line == (
        f"kernbench: note: --sips=4 behind {script} is an argument of the script; options of the "
        "simulation stand before it"
    )
