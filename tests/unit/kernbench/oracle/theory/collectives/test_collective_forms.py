from collections import Counter
from itertools import pairwise

import pytest

from kernbench.oracle.theory.collectives.collective_forms import FORMS, CollectiveTimes
from kernbench.oracle.theory.paths.sip_grid import SipGrid
from kernbench.oracle.theory.topology_file import TopologyFile
from runtime.core.config.config_file import default_file, read_text

MIB = 1 << 20


def times(*pes: tuple[int, int]) -> CollectiveTimes:
    file = TopologyFile.of(read_text(default_file("topology.yaml")))
    return CollectiveTimes(file.on_a_ring(4), pes)


@pytest.mark.parametrize("ranks", range(2, 10))
def test_the_busiest_link_of_an_all_to_all_is_that_of_its_routes(ranks: int) -> None:
    grid, parts = SipGrid(ranks), Counter[tuple[int, int]]()
    for source in range(ranks):
        for target in set(range(ranks)) - {source}:
            parts.update(pairwise(grid.path(source, target)))
    terms = FORMS["all_to_all_single"].terms(ranks, ranks * MIB)
    assert terms.link_bytes == max(parts.values()) * MIB


def test_forms_are_those_of_the_page() -> None:
    # B = 128 GB/s, M = 204.8 GB/s: docs/internals/collective-forms.md.
    one, alpha = times((12, 0)), float(times((12, 0)).link.alpha_ps)
    link, memory = MIB * 1000 / 128, MIB * 1000 / 204.8
    expected = {
        "all_reduce": 6 * alpha + 1.5 * link,
        "reduce_scatter_tensor": 3 * alpha + 1.25 * memory,
        "all_gather_into_tensor": 3 * alpha + 1.25 * memory,
        "all_to_all_single": alpha + 2 * memory,
        "broadcast": 3 * alpha + 2 * 8192 * 1000 / 128 + link,
        "reduce": 3 * alpha + 2 * 8192 * 1000 / 128 + 2 * memory,
    }
    found = {name: one.form_ps(name, 4, MIB) for name in FORMS}
    assert found == pytest.approx(expected, rel=1e-12)


def test_many_pes_have_the_memory_of_all_and_the_latency_of_the_nearest() -> None:
    near, both = times((12, 0)), times((0, 0), (12, 0))
    assert both.link == near.link
    assert both.form_ps("all_to_all_single", 2, MIB) == float(
        near.link.alpha_ps + MIB * 1000 / 204.8
    )
