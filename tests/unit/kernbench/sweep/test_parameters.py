"""Parameters: keys, flags, arguments and the number of SIPs with their values."""

import pytest

from kernbench.benches.ccl_allreduce import ccl_allreduce
from kernbench.sweep.parameters import (
    Parameter,
    ParameterKind,
    argument_parameter,
    key_parameter,
    require_different,
    sips_parameter,
)
from runtime.core.bench_registry import Bench, BenchOutcome, bench, registered
from runtime.core.errors import ConfigError, UsageError
from tests.unit.kernbench.sweep.test_keys import TEXTS

ALL_REDUCE = next(each for each in registered() if each.function is ccl_allreduce)
assert isinstance(ALL_REDUCE, Bench)


def test_the_values_of_a_key_have_the_types_of_its_file():
    assert key_parameter(TEXTS, "dma.channels=2..4") == Parameter(
        "dma.channels", ParameterKind.TOPOLOGY, "pe.dma.channels", (2, 3, 4)
    )
    assert key_parameter(TEXTS, "hbm.model=banks,channels").values == ("banks", "channels")
    assert key_parameter(TEXTS, "system.sips.w=null,2").values == (None, 2)
    assert key_parameter(TEXTS, "ring.n_slots=4").kind is ParameterKind.CCL


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("ucie.bw_gbs", "--set ucie.bw_gbs: expected KEY=VALUES, as in ucie.bw_gbs=64,128,256"),
        ("=1,2", "--set =1,2: expected KEY=VALUES, as in ucie.bw_gbs=64,128,256"),
        (
            "ucie.bw_gbs=64,0",
            "--set ucie.bw_gbs=0: ucie.bw_gbs: should be greater than or equal to 0.001, got 0",
        ),
        (
            "channels=2,2.5",
            "--set channels=2.5: pe.dma.channels: should be a valid integer, got 2.5",
        ),
        (
            "hbm.model=bank",
            "--set hbm.model=bank: hbm.model: should be 'channels' or 'banks', got 'bank'",
        ),
        ("ucie.bw_gbs=nan", "--set ucie.bw_gbs=nan: ucie.bw_gbs: should be a valid number"),
        ("ucie.bw_gbs=true", "--set ucie.bw_gbs=true: ucie.bw_gbs: should be a valid number"),
        ("ucie.bw_gbs=null", "--set ucie.bw_gbs=null: ucie.bw_gbs: should be a valid number"),
        (
            "defaults.slot_size=100",
            "--set defaults.slot_size=100: defaults.slot_size: should be a multiple of 64, got 100",
        ),
        ("ucie.bw_gbs=64,128,64.0", "--set ucie.bw_gbs: the value 64.0 is given twice"),
    ],
)
def test_wrong_values_of_a_key_are_refused_by_its_schema_in_one_line(text: str, problem: str):
    with pytest.raises((UsageError, ConfigError)) as refused:
        key_parameter(TEXTS, text)
    assert str(refused.value).startswith(problem)
    assert "\n" not in str(refused.value)


def test_a_flag_of_a_bench_has_the_type_of_the_flag():
    assert isinstance(ALL_REDUCE, Bench)
    assert argument_parameter("--min-bytes=256,512", ALL_REDUCE) == Parameter(
        "--min-bytes", ParameterKind.FLAG, "min_bytes", (256, 512)
    )
    assert argument_parameter("--dtype=float16,float32", ALL_REDUCE).values == (
        "float16",
        "float32",
    )


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("min=1", "--arg min=1: expected --NAME=VALUES, as in --size=256,512"),
        ("--=1", "--arg --=1: expected --NAME=VALUES, as in --size=256,512"),
        ("--min-byte=1,2", "--arg --min-byte: ccl-allreduce has no such flag; did you mean"),
        ("--min-bytes=1,a", "--arg --min-bytes=a: expected an integer, got 'a'"),
        ("--min-bytes=8,8", "--arg --min-bytes: the value 8 is given twice"),
        ("--min-bytes=", "--arg --min-bytes=: no value"),
        ("--min-bytes", "--arg --min-bytes=true: expected an integer, got 'true'"),
    ],
)
def test_wrong_flags_are_refused_in_one_line(text: str, problem: str):
    assert isinstance(ALL_REDUCE, Bench)
    with pytest.raises(UsageError) as refused:
        argument_parameter(text, ALL_REDUCE)
    assert str(refused.value).startswith(problem)
    assert "\n" not in str(refused.value)


def test_a_switch_of_a_bench_takes_true_and_false(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("runtime.core.bench_registry._REGISTRY", {})

    @bench("switched", "has a switch")
    def switched(rank: int, *, fast: bool = False) -> BenchOutcome:
        return BenchOutcome(str(rank), int(fast), 0)

    (own,) = registered()
    assert isinstance(own, Bench)
    assert switched(0).ok == 0
    assert argument_parameter("--fast=true,false", own).values == (True, False)
    assert argument_parameter("--fast", own).values == (True,)
    with pytest.raises(UsageError, match="--arg --fast=1: expected true or false"):
        argument_parameter("--fast=1", own)


def test_an_argument_of_a_script_keeps_its_characters():
    assert argument_parameter("--size=256,0512,1e3,1.5,true,a", None).values == (
        256,
        "0512",
        "1e3",
        1.5,
        "true",
        "a",
    )
    assert argument_parameter("--fast", None).values == (True,)


def test_the_number_of_sips_is_at_least_one():
    assert sips_parameter("1,2..4").values == (1, 2, 3, 4)
    with pytest.raises(UsageError, match="--sips=0: expected an integer of at least 1, got '0'"):
        sips_parameter("0,1")


@pytest.mark.parametrize(
    ("first", "second", "problem"),
    [
        ("channels=1,2", "channels=3,4", "channels is given twice"),
        (
            "channels=1,2",
            "pe.dma.channels=3,4",
            "channels and pe.dma.channels are the same key, pe.dma.channels",
        ),
    ],
)
def test_a_key_that_is_given_twice_is_refused(first: str, second: str, problem: str):
    with pytest.raises(UsageError) as refused:
        require_different([key_parameter(TEXTS, first), key_parameter(TEXTS, second)])
    assert str(refused.value) == problem


def test_the_number_of_sips_is_refused_as_a_key_and_as_an_option():
    count = key_parameter(TEXTS, "system.sips.count=1,2")
    with pytest.raises(UsageError, match=r"system\.sips\.count and --sips are the same key"):
        require_different([count, sips_parameter("1,2")])
