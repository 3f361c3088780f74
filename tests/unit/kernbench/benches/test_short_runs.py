import pytest

from kernbench.benches import BENCHES, short_runs
from kernbench.benches.short_runs import SHORT_BENCHES, SIPS_OF_A_PROCESS, procs_by_cores


@pytest.fixture(autouse=True)
def eight_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(short_runs, "usable_cores", lambda: 8)


def test_a_short_bench_has_several_sips_in_each_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(short_runs, "IS_COMPILED", True)
    assert set(BENCHES) > SHORT_BENCHES
    for bench in SHORT_BENCHES:
        procs = [procs_by_cores(sips, bench) for sips in (1, 2, 7, 8, 32, 1024)]
        assert procs == [1, 1, 1, 2, 8, 8]
        assert SIPS_OF_A_PROCESS == 4


def test_any_other_run_has_a_process_for_each_core(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(short_runs, "IS_COMPILED", True)
    for bench in (None, "mine", "qkv-gemm-multi-pe"):
        assert [procs_by_cores(sips, bench) for sips in (1, 7, 100)] == [1, 7, 8]


def test_interpreted_sips_are_slow_enough_for_a_process_each(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(short_runs, "IS_COMPILED", False)
    assert procs_by_cores(4, "ccl-allreduce") == 4
