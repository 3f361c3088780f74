from pathlib import Path

import pytest

from kernbench.cli.options import Invocation, find_bench, parse
from runtime.core.bench_registry import Bench, Flag
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
    _bench("probe", Flag("sweep", float, 1.5, "")),
)


def refusal(*words: str) -> str:
    with pytest.raises(UsageError) as caught:
        parse(words, BENCHES)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def run_of(*words: str) -> Invocation:
    invocation = parse(words, BENCHES)
    assert invocation is not None
    return invocation


def test_without_words_the_default_bench_runs_with_the_defaults_of_its_flags():
    flags = {"algorithm": "", "n_elem": 256, "check": True}
    assert run_of() == Invocation(BENCHES[0], flags)


@pytest.mark.parametrize(
    "words",
    [
        ["--sips", "4", "--procs", "2"],
        ["--sips=4", "--procs=2"],
        ["run", "--sips=4", "--procs", "2"],
    ],
)
def test_a_value_follows_its_option_or_an_equals_sign(words: list[str]):
    invocation = run_of(*words)
    assert (invocation.sips, invocation.procs) == (4, 2)


def test_verification_is_asked_for():
    assert run_of("--verify-data").verify_data
    assert not run_of().verify_data


def test_flags_of_the_bench_are_options_after_its_name():
    assert run_of("--bench", "probe", "--sweep", "2.5").flags == {"sweep": 2.5}


def test_flags_of_a_bench_may_come_before_its_name():
    assert run_of("--sweep", "2.5", "--sips=2", "--bench=probe").flags == {"sweep": 2.5}


def test_a_flag_may_have_any_name_that_is_not_an_option():
    benches = (_bench("ccl-allreduce", Flag("words", int, 5, "")),)
    assert parse(["--words", "6"], benches) == Invocation(benches[0], {"words": 6})


def test_flags_of_the_default_bench_need_no_name():
    assert run_of("--algorithm", "ring", "--n-elem=8", "--no-check").flags == {
        "algorithm": "ring",
        "n_elem": 8,
        "check": False,
    }


def test_a_bench_is_found_by_number():
    assert find_bench("2", BENCHES).name == "probe"


def test_everything_after_a_script_belongs_to_the_script(tmp_path: Path):
    script = tmp_path / "train.py"
    script.touch()
    words = ("--sips", "9", "list", "--", "--help", "--bench")
    invocation = run_of("--sips", "2", str(script), *words)
    assert (invocation.sips, invocation.bench, invocation.script, invocation.argv) == (
        2,
        None,
        script,
        words,
    )


def test_after_two_dashes_comes_a_script_whatever_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    Path("list").touch()
    assert run_of("--", "list", "--x").script == Path("list")


@pytest.mark.parametrize("words", [["list"], ["--list"]])
def test_the_benches_are_listed_by_command_and_by_option(
    words: list[str], capsys: pytest.CaptureFixture[str]
):
    assert parse(words, BENCHES) is None
    assert [line.split()[:2] for line in capsys.readouterr().out.splitlines()] == [
        ["1", "ccl-allreduce"],
        ["2", "probe"],
    ]


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--sisp", "4"], "unknown option '--sisp'; did you mean '--sips'?"),
        (["--algoritm", "ring"], "unknown option '--algoritm'; did you mean '--algorithm'?"),
        (["--bench", "probe", "--swep=1"], "unknown option '--swep'; did you mean '--sweep'?"),
        (["-sips", "4"], "unknown option '-sips'; did you mean '--sips'?"),
        (["--bench", "prob"], "unknown bench 'prob'; did you mean 'probe'?"),
        (["--bench", "3"], "--bench 3: benches have numbers from 1 to 2, see --list"),
        (["--sip", "4"], "unknown option '--sip'; did you mean '--sips'?"),
        (
            ["--no-sweep", "--bench", "probe"],
            "unknown option '--no-sweep'; did you mean '--sweep'?",
        ),
        (["--sips", "2", "run"], "the command 'run' comes before the options"),
        (["lst"], "unknown command 'lst'; did you mean 'list'?"),
        (["missing/train.py"], "no such script: 'missing/train.py'"),
        (["--sips", "0"], "--sips: expected an integer of at least 1, got '0'"),
        (["--procs", "two"], "--procs: expected an integer of at least 1, got 'two'"),
        (["--timeout", "nan"], "--timeout: expected a number of at least 0, got 'nan'"),
        (["--n-elem", "x"], "--n-elem: expected an integer, got 'x'"),
        (["--sips"], "--sips needs a value"),
        (["--no-data=1"], "--no-data takes no value, got '1'"),
        (["--check=yes"], "--check takes no value, got 'yes'"),
        (["--no-algorithm"], "unknown option '--no-algorithm'; did you mean '--algorithm'?"),
        (
            ["--algorithm", "ring", "--bench", "probe"],
            "--algorithm is not an option of the bench probe",
        ),
    ],
)
def test_a_wrong_word_is_refused_in_one_line_with_the_nearest_right_one(
    words: list[str], problem: str
):
    assert refusal(*words) == problem


def test_a_script_takes_no_options_of_a_bench(tmp_path: Path):
    script = tmp_path / "train.py"
    script.touch()
    assert "either a bench or a script" in refusal("--bench", "probe", str(script))
    assert "'list' takes no argument" in refusal("list", str(script))


@pytest.mark.parametrize("asked", ["--help", "-h"])
def test_the_help_shows_every_option_in_its_group_and_the_flags_of_the_bench(
    asked: str, capsys: pytest.CaptureFixture[str]
):
    assert parse(["--sips", "2", asked], BENCHES) is None
    text = capsys.readouterr().out
    for words in (
        "what runs:",
        "--sips N",
        "--procs P",
        "--jitter-ms MS",
        "--out DIR",
        "examples:",
        "train.py --steps 10",
    ):
        assert words in text
    for words in (
        "flags of ccl-allreduce:",
        "--n-elem N",
        "[default: 256]",
        "--check / --no-check",
        "[default: check]",
    ):
        assert words in text


def test_the_help_shows_the_flags_of_the_bench_that_is_named(capsys: pytest.CaptureFixture[str]):
    assert parse(["--help", "--bench", "probe"], BENCHES) is None
    text = capsys.readouterr().out
    assert "--sweep X" in text
    assert "--n-elem" not in text
