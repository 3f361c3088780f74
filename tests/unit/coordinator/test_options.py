from pathlib import Path

import pytest

from coordinator.help_text import help_text
from coordinator.options import find_bench, parse
from runtime.bench_registry import Bench, Flag
from runtime.errors import UsageError


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


def test_without_words_the_default_bench_runs():
    invocation = parse([], BENCHES)
    assert (invocation.command, invocation.bench, invocation.sips, invocation.data) == (
        "run",
        "ccl-allreduce",
        None,
        True,
    )


@pytest.mark.parametrize(
    "words", [["--sips", "4", "--procs", "2"], ["--sips=4", "--procs=2"], ["run", "--sips=4", "--procs", "2"]]
)
def test_a_value_follows_its_option_or_an_equals_sign(words: list[str]):
    invocation = parse(words, BENCHES)
    assert (invocation.sips, invocation.procs) == (4, 2)


def test_flags_of_the_bench_are_options_after_its_name():
    assert parse(["--bench", "probe", "--sweep", "2.5"], BENCHES).flags == {"sweep": 2.5}


def test_flags_of_the_default_bench_need_no_name():
    assert parse(["--algorithm", "ring", "--n-elem=8", "--no-check"], BENCHES).flags == {
        "algorithm": "ring",
        "n_elem": 8,
        "check": False,
    }


def test_a_bench_is_found_by_number():
    assert find_bench("2", BENCHES).name == "probe"


def test_everything_after_a_script_belongs_to_the_script(tmp_path: Path):
    script = tmp_path / "train.py"
    script.touch()
    invocation = parse(["--sips", "2", str(script), "--sips", "9", "list", "--bench"], BENCHES)
    assert (invocation.sips, invocation.script, invocation.argv) == (2, script, ("--sips", "9", "list", "--bench"))


def test_after_two_dashes_comes_a_script_whatever_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    Path("list").touch()
    assert parse(["--", "list", "--x"], BENCHES).script == Path("list")


@pytest.mark.parametrize("words", [["list"], ["--list"]])
def test_the_benches_are_listed_by_command_and_by_option(words: list[str]):
    assert parse(words, BENCHES).command == "list"


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--sisp", "4"], "unknown option '--sisp'; did you mean '--sips'?"),
        (["--algoritm", "ring"], "unknown option '--algoritm'; did you mean '--algorithm'?"),
        (["--bench", "probe", "--swep=1"], "unknown option '--swep'; did you mean '--sweep'?"),
        (["-sips", "4"], "unknown option '-sips'; did you mean '--sips'?"),
        (["--bench", "prob"], "unknown bench 'prob'; did you mean 'probe'?"),
        (["--bench", "3"], "--bench 3: benches have numbers from 1 to 2, see --list"),
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
        (["--algorithm", "ring", "--bench", "probe"], "--algorithm is not an option of the bench probe"),
    ],
)
def test_a_wrong_word_is_refused_in_one_line_with_the_nearest_right_one(words: list[str], problem: str):
    assert refusal(*words) == problem


def test_a_script_takes_no_options_of_a_bench(tmp_path: Path):
    script = tmp_path / "train.py"
    script.touch()
    assert "either a bench or a script" in refusal("--bench", "probe", str(script))
    assert "'list' takes no argument" in refusal("list", str(script))


def test_the_help_shows_every_option_and_the_flags_of_the_bench():
    text = "\n".join(help_text(BENCHES[0]))
    for option in ("--sips N", "--procs P", "--jitter-ms MS", "--out DIR", "--n-elem N", "(default: 256)", "(default: on)"):
        assert option in text
