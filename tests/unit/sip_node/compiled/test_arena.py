"""Memory in C is freed also where the collector finds its owner in a cycle."""

import gc
import sys
from typing import Any

import pytest

from runtime.core.compiled.choice import IS_COMPILED

if not IS_COMPILED:
    pytest.skip("the compiled core does not run", allow_module_level=True)

from sip_node.compiled.arena import Arena

from sip_node.compiled.credited_hops import WormPool


@pytest.mark.parametrize("owner", [Arena, WormPool])
def test_the_collector_deletes_an_owner_without_an_error(
    owner: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    problems = list[Any]()
    monkeypatch.setattr(sys, "unraisablehook", problems.append)
    # Made before the list, so that the collector clears it first.
    owned = owner()
    cycle = [owned]
    cycle.append(cycle)
    del owned, cycle
    assert gc.collect() > 0
    assert problems == []
