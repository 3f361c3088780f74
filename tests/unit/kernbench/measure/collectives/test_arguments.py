"""The arguments of `perf`: those of nccl-tests, and the messages for wrong ones."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kernbench.cli.main import call
from kernbench.command.options import CliContext
from kernbench.measure.collectives.arguments import REFUSED, PerfRequest, parse_size
from kernbench.measure.collectives.measurement import plan_of
from runtime.core.errors import ConfigError, UsageError
from tests.support.perf_parameters import PARAMETERS


def request_of(arguments: str) -> PerfRequest:
    requests: list[Any] = []
    context = CliContext(tuple, lambda request: requests.append(request) or 0)
    assert call(["perf", *arguments.split()], context) == 0
    [request] = requests
    return request


def refusal(arguments: str) -> str:
    with pytest.raises((UsageError, ConfigError)) as caught:
        plan_of(request_of(arguments))
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "nbytes"),
    [
        ("8", 8),
        ("64K", 65_536),
        ("64k", 65_536),
        ("1.5M", 3 << 19),
        ("2g", 2 << 30),
        (".5K", 512),
        ("1.K", 1024),
        ("3.7", 3),
    ],
)
def test_sizes_are_bytes_or_have_a_unit_of_1024(text: str, nbytes: int):
    assert parse_size(text) == nbytes


OTHER_SIZES = ("", "K", "8B", "8KiB", "-8", "0", "1e6", "nan", "0.5", "1 2")
HUGE_SIZES = ("8796093022208M", "9" * 30, "9" * 400)


@pytest.mark.parametrize("text", [*OTHER_SIZES, *HUGE_SIZES])
def test_other_sizes_are_refused(text: str):
    with pytest.raises(ValueError, match=text or "^$"):
        parse_size(text)


def test_the_arguments_of_nccl_tests_are_accepted():
    line = "all_reduce -b 8 -e 64M -f 2 -n 5 -w 1 -c 1 -o sum -d half --sips 4"
    assert request_of(line).parameters == replace(
        PARAMETERS, max_bytes=64 << 20, iters=5, cubes="", pes=0
    )


def test_long_names_mean_the_same_as_short_ones():
    short = request_of("reduce -b 1K -e 4K -i 1K -n 2 -w 3 -c 4 -o max -d int32 -r 1 -a 3")
    long = request_of(
        "reduce --minbytes=1K --maxbytes=4K --stepbytes 1K --iters 2 --warmup_iters 3 --check 4 "
        "--op max --datatype int32 --root 1 --average 3"
    )
    assert short == long
    assert (short.average, short.parameters.step_bytes) == (3, 1024)


def test_without_a_largest_size_there_is_one_size():
    parameters = request_of("all_reduce -b 2K").parameters
    assert (parameters.min_bytes, parameters.max_bytes) == (2048, 2048)


def test_every_rank_is_a_root_in_turn():
    assert request_of("broadcast -r all").parameters.root == -1


def test_the_options_of_every_run_reach_the_plan():
    plan = plan_of(
        request_of(
            "all_reduce --sips 3 --procs 2 --no-data --timeout 7 --jitter-ms 1 --jitter-seed 5 "
            "--delay-us 2.5"
        )
    )
    assert (plan.sips, plan.procs, plan.data, plan.timeout_s) == (3, 2, False, 7)
    assert (plan.jitter_ms, plan.jitter_seed) == (1, 5)
    assert plan.delay_us == plan.job.delay_us == 2.5
    assert plan_of(request_of("all_reduce --sips 2")).job.delay_us is None
    assert plan.program.arguments["pes"] == plan.config.topology.pes_per_cube


@pytest.mark.parametrize(
    ("arguments", "cubes"),
    [
        ("", "12"),
        ("--cubes 2", "12,13"),
        ("--cubes 5", "12,13,14,15,8"),
        ("--on-cubes 0", "0"),
        ("--on-cubes 13,2", "13,2"),
    ],
)
def test_buffers_are_on_the_cubes_nearest_to_the_io_chiplet_or_on_given_ones(
    arguments: str, cubes: str
):
    assert plan_of(request_of(f"all_reduce {arguments}")).program.arguments["cubes"] == cubes


def test_an_op_log_is_kept_only_on_request(tmp_path: Path):
    assert not plan_of(request_of("all_reduce")).trace
    assert plan_of(request_of(f"all_reduce --out {tmp_path}/x")).trace
    assert plan_of(request_of("all_reduce --verify-data")).trace


@pytest.mark.parametrize("names", list(REFUSED), ids=lambda names: names[-1])
def test_a_flag_without_meaning_is_refused_by_name_with_the_reason(names: tuple[str, ...]):
    for name in names:
        assert (
            refusal(f"all_reduce {name} 1")
            == f"perf: {'/'.join(names)} has no meaning here: {REFUSED[names]}"
        )


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (
            "",
            (
                "which collective? one of all_reduce, all_gather, reduce_scatter, alltoall, "
                "broadcast, reduce, sendrecv"
            ),
        ),
        ("allreduce", "unknown collective 'allreduce'; did you mean 'all_reduce'?"),
        ("all_reduce --minbyte 8", "unknown option '--minbyte'; did you mean '--minbytes'?"),
        (
            "all_reduce -b 8x",
            (
                "-b: expected a size of at least one byte and below 2^63, "
                "such as 8, 64K, 1.5M or 1G, got '8x'"
            ),
        ),
        ("all_reduce -b 8 -e 4", "-b 8 is more than -e 4"),
        ("all_reduce -i 8 -f 2", "either -i/--stepbytes or -f/--stepfactor, not both"),
        ("all_reduce -f 0", "-f: expected an integer of at least 1, got '0'"),
        ("all_reduce -n 0", "-n: expected an integer of at least 1, got '0'"),
        ("all_reduce -o product", "-o: unknown 'product'; did you mean 'prod'?"),
        ("all_reduce -d bfloat1", "-d: unknown 'bfloat1'; did you mean 'bfloat16'?"),
        ("all_reduce -o avg -d int8", "-o avg -d int8: an average is for half, bfloat16 and float"),
        ("all_reduce -a 4", "-a: expected 0 (rank 0), 1 (mean), 2 (min) or 3 (max), got '4'"),
        ("all_reduce -r first", "-r: expected an integer of at least 0, got 'first'"),
        ("reduce -r 2", "-r 2: the ranks are 0 to 1"),
        ("all_reduce --pes 9", "--pes 9: there are 8"),
        ("all_reduce --cubes 17", "--cubes 17: there are 16"),
        ("all_reduce --cubes 0", "--cubes: expected an integer of at least 1, got '0'"),
        ("all_reduce --cubes 1 --on-cubes 1", "either --cubes or --on-cubes, not both"),
        ("all_reduce --on-cubes 3,16", "--on-cubes 16: the cubes are 0 to 15"),
        *(
            (
                f"all_reduce --on-cubes {wrong}",
                (
                    "--on-cubes: expected numbers of cubes, each once, such as 12 or 12,13, "
                    f"got {wrong!r}"
                ),
            )
            for wrong in ("all", "1,1", "1,", "=-1", "1-3")
        ),
        ("all_reduce again", "Got unexpected extra argument (again)"),
    ],
)
def test_a_wrong_argument_is_refused_in_one_line(arguments: str, problem: str):
    assert refusal(arguments) == f"perf: {problem}"


def test_an_algorithm_that_does_not_exist_is_refused_with_the_nearest_one():
    assert refusal("all_reduce --algorithm rnig").endswith(
        "no algorithm 'rnig'; did you mean 'ring'?"
    )


def test_the_choice_by_size_has_a_name():
    assert (
        plan_of(request_of("all_reduce --algorithm auto")).program.arguments["algorithm"] == "auto"
    )


def test_the_help_shows_the_flags_except_those_without_meaning(
    capsys: pytest.CaptureFixture[str],
):
    assert call(["perf", "--help"]) == 0
    text = capsys.readouterr().out
    for part in (
        "flags of nccl-tests:",
        "-b, --minbytes SIZE",
        "--sips N",
        "-J, --json, --output_file FILE",
        "all_gather",
    ):
        assert part in text
    assert "--ngpus" not in text
