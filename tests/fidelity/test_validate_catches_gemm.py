"""A wrong matrix engine, port, number or memory fails exactly the checks concerned."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from kernbench.oracle.checks.check import Check
from kernbench.oracle.checks.plan import run
from runtime.language import functions
from runtime.language.value import Array
from runtime.model.tiles import TileSize
from runtime.model.topology import Topology
from sip_node.chip.fabric.server import Server
from sip_node.chip.memory.hbm import PseudoChannels
from sip_node.chip.memory.memory_channels import MemoryChannels
from sip_node.chip.memory.storage import HbmController
from sip_node.chip.pe.compute.fetch_store import PeFetchStore
from sip_node.chip.pe.compute.gemm import PeGemm
from sip_node.chip.pe.compute.tile_token import TileToken
from tests.fidelity.chosen_checks import missed_ids
from tests.fidelity.engines.numbers import FLOATING
from tests.fidelity.plan import every_part
from tests.support.topologies import default_text, variant_text

pytestmark = [pytest.mark.fidelity, pytest.mark.slow]


def checks(text: str = default_text(), *, only: str = "j.") -> list[Check]:
    """The checks whose ids start with `only`, run in this process."""
    chosen = [part for part in every_part(1) if part.may_match(only)]
    return list(run(text, chosen, only))


def ids(results: list[Check], *prefixes: str) -> set[str]:
    """The ids that start with one of the prefixes; there is at least one for each prefix."""
    assert all(any(check.id.startswith(prefix) for check in results) for prefix in prefixes)
    return {check.id for check in results if check.id.startswith(prefixes)}


PIPELINE = re.compile(r"(j\.pipeline\.\d+)\.\w+")
SIZES = re.compile(r"\((\d+) x (\d+)\) \(\d+ x (\d+)\).* tile (\d+)x(\d+)x(\d+)")
BUFFERS = tuple(f"j.buffers.{name}" for name in (1, 2, 3, 4, "result"))
"""Streams of tiles through the buffers; the remaining check of the group ends at a first fetch."""


def missed_products(results: list[Check]) -> set[str]:
    """The ids of missed checks; the three rows of a random pipeline share one.

    Whether a wrong stage shows in the time of a product, in the waits of its engine for operands,
    or for accumulators, depends on the other stages.
    """
    return {PIPELINE.sub(r"\1", name) for name in missed_ids(results)}


def pipelines(results: list[Check], condition: Callable[[Check], bool]) -> set[str]:
    """The random pipelines that meet `condition`; at least one."""
    chosen = {
        matched[1]
        for check in results
        if (matched := PIPELINE.fullmatch(check.id)) and condition(check)
    }
    assert chosen
    return chosen


def is_systolic(check: Check) -> bool:
    return "systolic" in check.text


def ends_inside_a_tile(check: Check) -> bool:
    sizes = SIZES.search(check.text)
    assert sizes is not None
    lengths = [int(size) for size in sizes.groups()]
    return any(length % tile for length, tile in zip(lengths[:3], lengths[3:], strict=True))


class TwiceAsFast(PeGemm):
    """Twice the multiplications per cycle that the file gives."""

    def _cycles_ps(self, size: TileSize, last: bool) -> int:
        return super()._cycles_ps(size, last) // 2


class SkipsPadding(PeGemm):
    """A partial tile takes fewer cycles than a full one."""

    def _cycles_ps(self, size: TileSize, last: bool) -> int:
        return self._clock.ps(-(-size.m * size.k * size.n // self._model.macs_per_cycle))


class Coarse(PeGemm):
    """Rounds its sums to float16 after each step."""

    def accumulated(self, sums: Array | None, a: Array, b: Array) -> Array:
        exact = super().accumulated(sums, a, b)
        return exact if exact.dtype.kind == "i" else exact.astype(np.float16).astype(exact.dtype)


class NoSkew(PeGemm):
    """An array whose cells all receive their operands at the same time."""

    def _cycles_ps(self, size: TileSize, last: bool) -> int:
        return super()._cycles_ps(size, False)


class WaitsForData(PeGemm):
    """Takes one picosecond more in runs with data."""

    def accept(self, token: TileToken) -> None:
        more_ps = int(token.a.data is not None)
        self.engine.at(self.engine.now_ps + more_ps, super().accept, token)


class NarrowFetch(PeFetchStore):
    """Half the bandwidth to the registers."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        server = self.fetch.server
        self.fetch.server = Server(server.name, 256)


class FastHbm(HbmController):
    """A slice with its full raw bandwidth, independently of the efficiency in the file."""

    def memory_channels(self, name: str, topology: Topology) -> MemoryChannels:
        fast = PseudoChannels(name, topology)
        fast.channels = [Server(server.name, topology.hbm.pc_bw_gbs) for server in fast.channels]
        return fast


def with_impl(kind: str, wrong: type) -> str:
    return variant_text(impl={kind: f"{__name__}:{wrong.__name__}"})


def test_the_correct_model_fails_no_check() -> None:
    assert not missed_ids(checks())


def near(bound: str, share: float) -> set[str]:
    """The random products limited by `bound` in the correct model.

    The bound is more than `share` of their time.
    """
    limited = [check for check in checks(only="j.bound") if f"of {bound}" in check.text]
    return {check.id for check in limited if check.measured > share}


def test_an_engine_twice_as_fast_fails_all_checks_limited_by_it() -> None:
    results = checks(with_impl("pe_gemm", TwiceAsFast))
    # If the bound is more than 60 % of the time, the remaining time is less than the half of the
    # bound which the fast engine saves, so the product is faster than its bound.
    faster = near("compute", 0.6)
    assert faster
    slowest = ids(results, "j.staged.", "j.fed.2", "j.fed.4", "j.pad.", "j.systolic.", *BUFFERS)
    every = pipelines(results, lambda _: True)
    assert missed_products(results) == {*slowest, *faster, *every, "j.busy.peak"}


def test_a_narrow_fetch_port_fails_products_with_operands_in_tcm() -> None:
    results = checks(with_impl("pe_fetch_store", NarrowFetch))
    # Tiles from HBM arrive more slowly than this port fetches them, unless it is the only buffer
    # or the last tile whose time counts.
    every = pipelines(results, lambda _: True)
    assert missed_products(results) == ids(results, "j.staged.", *BUFFERS) | every


def test_a_memory_faster_than_in_the_file_fails_memory_bound_products() -> None:
    results = checks(with_impl("hbm_ctrl", FastHbm))
    # This memory saves a fifth of the bound, so a product is faster than its bound if the rest of
    # its time is less than that.
    faster = near("memory", 1 / 1.2)
    assert faster
    exact = ids(results, "j.fed.0.25", "j.fed.0.5", "j.pipeline.dma", *BUFFERS)
    assert missed_ids(results) == exact | faster


def test_an_engine_that_skips_padding_fails_products_that_end_inside_a_tile() -> None:
    results = checks(with_impl("pe_gemm", SkipsPadding))
    # The class computes no cycles of an array.
    wrong = pipelines(results, lambda check: is_systolic(check) or ends_inside_a_tile(check))
    assert missed_products(results) == ids(results, "j.pad.", "j.systolic.") | wrong


def test_an_array_without_skew_fails_the_comparison_with_scale_sim() -> None:
    results = checks(with_impl("pe_gemm", NoSkew))
    assert missed_products(results) == ids(results, "j.systolic.") | pipelines(results, is_systolic)


def test_sums_of_low_precision_fail_all_floating_point_products() -> None:
    results = checks(with_impl("pe_gemm", Coarse), only="k.")
    assert missed_ids(results) == ids(
        results, *(f"k.{each.name}.gemm" for each in FLOATING), "k.mock"
    )


def test_an_approximate_function_fails_in_each_type_that_has_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def gelu(x: Array) -> Array:
        return x / (1 + np.exp(-1.702 * x))

    monkeypatch.setitem(
        functions.ELEMENTWISE, "gelu", functions.ELEMENTWISE["gelu"]._replace(function=gelu)
    )
    results = checks(only="k.")
    assert missed_ids(results) == ids(results, *(f"k.{each.name}.elementwise" for each in FLOATING))
    assert all("gelu" in check.text for check in results if not check.passed)


def test_times_that_depend_on_data_fail_the_run_without_data() -> None:
    results = checks(with_impl("pe_gemm", WaitsForData), only="k.")
    assert missed_ids(results) == {"k.no-data"}
