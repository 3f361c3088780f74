"""Number of rounds of LPs, and the share of silence reports in the contents between hosts: for
packets that leave without a pause, and for no packets at all.
"""

from collections.abc import Callable, Sequence

import pytest

from kernbench.benches.gemm_single_pe import gemm_single_pe
from runtime import DPPolicy, torch
from runtime.wire.frames import Frame
from tests.support.lps import contents_between_hosts, statistics_of
from tests.support.topologies import variant_text

NBYTES = 1 << 20


def all_reduce(rank: int) -> None:
    torch.ahbm.set_device(rank)
    torch.distributed.init_process_group("ahbm", algorithm="ring")
    placement = DPPolicy(cube="row_wise", pe="row_wise", cubes=(12,))
    torch.distributed.all_reduce(torch.zeros(8, NBYTES // 16, dtype=torch.float16, dp=placement))


@pytest.mark.parametrize(
    ("deal", "rounds"), [(((0,), (1,)), 60), (((0, 1), (2, 3)), 80), (((3, 0), (1,), (2,)), 80)]
)
def test_an_all_reduce_needs_few_rounds(deal: Sequence[tuple[int, ...]], rounds: int) -> None:
    counts = statistics_of(all_reduce, deal, variant_text(system__sips__topology="ring_1d"))
    assert max(each.rounds for each in counts) <= rounds


def product(rank: int) -> None:
    gemm_single_pe(rank, m=256, k=256, n=256)


def test_sips_that_exchange_nothing_need_a_dozen_rounds() -> None:
    counts = statistics_of(product, ((0,), (1,)), variant_text())
    assert max(each.rounds for each in counts) <= 12
    assert sum(each.messages for each in counts) == 0


def on_several_pes(rank: int) -> None:
    torch.ahbm.set_device(rank)
    torch.distributed.init_process_group("ahbm")
    placement = DPPolicy(cube="column_wise", pe="column_wise", cubes=(12,))
    x = torch.zeros(64, 256, dtype=torch.float16)
    torch.matmul(x, torch.zeros(256, 512, dtype=torch.float16, dp=placement))
    torch.ahbm.synchronize()


def test_products_beside_a_process_group_need_few_rounds() -> None:
    counts = statistics_of(on_several_pes, ((0,), (1,)), variant_text())
    assert max(each.rounds for each in counts) <= 20


MOST_SILENCE = 0.15
"""Share of reports, calls and grants in the contents between hosts; `tests/cluster` has the same
for real hosts.
"""


@pytest.mark.slow
@pytest.mark.parametrize("program", [all_reduce, product, on_several_pes])
@pytest.mark.parametrize("hosts", [(0, 0, 1, 1), (0, 0, 0, 1, 1, 1)])
def test_few_of_the_contents_between_hosts_are_about_silence(
    program: Callable[[int], None], hosts: Sequence[int]
) -> None:
    contents = contents_between_hosts(program, hosts, variant_text())
    silence = [content for content in contents if not isinstance(content, Frame)]
    assert 0 < len(silence) <= MOST_SILENCE * len(contents)
