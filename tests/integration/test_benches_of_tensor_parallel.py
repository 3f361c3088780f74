"""The benches of tensor parallel layers: flags that they refuse, and errors that they detect."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from kernbench.benches import ipcq_allreduce as ipcq
from kernbench.benches import tp_attention_block as attention
from kernbench.benches import tp_mlp as mlp
from kernbench.benches.tensor_parallel import check_layer_flags, timed
from runtime.ccl.config import CclConfig
from runtime.core.bench_registry import BenchOutcome
from runtime.core.errors import UsageError
from tests.support.topologies import variant_text
from tests.support.world import simulate

TWO_PES = variant_text(
    sip__cube_mesh={"w": 1, "h": 1},
    cube__pe_layout__pe_per_corner=1,
    cube__pe_layout__corners=["NW", "SE"],
)
MLP = partial(mlp.tp_mlp, tokens=4, width=32, hidden=64)
ATTENTION = partial(attention.tp_attention_block, tokens=40, width=32, heads=4)
ALL_REDUCE = partial(ipcq.ipcq_allreduce, elements=9000)


def outcomes(
    bench: Callable[..., BenchOutcome], sips: int = 2, *, data: bool = True
) -> list[BenchOutcome]:
    world = simulate(bench, sips, topology=TWO_PES, data=data)
    return [world.returned[rank] for rank in range(sips)]


@pytest.mark.parametrize("sips", [1, 2, 3])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_benches_are_right_in_every_type(sips: int, dtype: str):
    for bench in (partial(MLP, hidden=66), partial(ATTENTION, width=48, heads=6), ALL_REDUCE):
        for outcome in outcomes(partial(bench, dtype=dtype), sips):
            assert (outcome.wrong, outcome.unchecked) == (0, 0)
            assert outcome.ok > 0
            assert outcome.table is not None


def test_heads_are_divided_over_cubes_of_which_the_last_has_fewer_pes():
    # 3 heads a rank, on 2 PEs of one cube and 1 of the next.
    two_cubes = variant_text(
        sip__cube_mesh={"w": 1, "h": 2},
        cube__pe_layout__pe_per_corner=1,
        cube__pe_layout__corners=["NW", "SE"],
    )
    world = simulate(partial(ATTENTION, tokens=4, width=48, heads=6), 2, topology=two_cubes)
    assert [outcome.wrong for outcome in world.returned.values()] == [0, 0]


def test_without_data_nothing_is_checked_and_the_times_are_the_same():
    for bench in (MLP, ATTENTION, ALL_REDUCE):
        with_data, without = outcomes(bench), outcomes(bench, data=False)
        for one, other in zip(with_data, without, strict=True):
            assert other.unchecked == one.ok
            assert one.table == other.table


def test_a_wrong_element_of_one_rank_is_detected(monkeypatch: pytest.MonkeyPatch):
    def spoiled(call: Callable[[], Any], warmup: int) -> Any:
        result, time_ps = timed(call, warmup)
        first = result.numpy()
        first[0, 0] += np.float16(1)
        result.copy_(first)
        return result, time_ps

    for module, bench, checks in (
        (mlp, MLP, mlp.CHECKS),
        (attention, ATTENTION, attention.CHECKS),
        (ipcq, ALL_REDUCE, 2),
    ):
        monkeypatch.setattr(module, "timed", spoiled)
        for outcome in outcomes(bench):
            assert (outcome.ok, outcome.wrong) == (checks - 1, 1)


@pytest.mark.parametrize(
    ("bench", "message"),
    [
        (partial(MLP, hidden=33), "--hidden 33: does not divide by 2 ranks"),
        (partial(ATTENTION, heads=1), "--heads 1: does not divide by 2 ranks"),
        (partial(ATTENTION, tokens=9000), "--tokens 9000: a head needs "),
        (partial(ALL_REDUCE, pes=3), "--pes 3: a cube has 2; 0 means all"),
    ],
    ids=["hidden", "heads", "tokens", "pes"],
)
def test_flags_that_do_not_fit_the_run_are_refused(
    bench: Callable[[int], BenchOutcome], message: str
):
    with pytest.raises(UsageError) as caught:
        outcomes(bench)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("check", "flags", "message"),
    [
        (check_layer_flags, {"tokens": 0, "warmup": 0}, "--tokens 0: must be at least 1"),
        (check_layer_flags, {"tokens": 1, "warmup": -1}, "--warmup -1: must be at least 0"),
        (
            attention.check_flags,
            {"tokens": 1, "width": 10, "heads": 4, "warmup": 0},
            "--width 10: does not divide by 4 heads",
        ),
        (ipcq.check_flags, {"elements": 0, "warmup": 0}, "--elements 0: must be at least 1"),
    ],
    ids=["tokens", "warmup", "width", "elements"],
)
def test_wrong_sizes_are_refused_before_a_process_starts(
    check: Callable[..., None], flags: dict[str, int], message: str
):
    ccl = CclConfig.__new__(CclConfig)
    with pytest.raises(UsageError) as caught:
        check(ccl, dtype="float16", **flags)
    assert str(caught.value).startswith(message)
    with pytest.raises(UsageError, match=r"--dtype: 'float8' is not known"):
        check(ccl, dtype="float8", **flags)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--nprocs", "0"], "--nprocs 0: must be at least 1"),
        (["--tokens", "0"], "--tokens 0: must be at least 1"),
        (["--hidden", "63"], "--hidden 63: does not divide by 2 ranks"),
    ],
    ids=["nprocs", "tokens", "hidden"],
)
def test_the_module_refuses_wrong_sizes_in_one_line(
    arguments: list[str],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    monkeypatch.setattr("sys.argv", ["tp_mlp", *arguments])
    with pytest.raises(SystemExit, match="2"):
        mlp.main()
    assert capsys.readouterr().err.endswith(f"error: {message}\n")
