"""The simulations of this process, each recorded and checked when it has ended."""

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

import pytest

from kernbench import simulation
from kernbench.explain.records import RunRecords
from kernbench.explain.records.collected import simulated_records
from kernbench.simulation import Simulation


@contextmanager
def checked_simulations(check: Callable[[RunRecords], object]) -> Generator[None]:
    """Call `check` with the records of each simulation meanwhile."""
    real = simulation.simulate

    def recorded(program: Callable[[int], object], sips: int = 2, **options: Any) -> Simulation:
        options["record"] = True
        world = real(program, sips, **options)
        check(simulated_records(sips, world.time_ps, world.rows, world.texts))
        return world

    with pytest.MonkeyPatch.context() as patch:
        # Modules have it by its name; those that are imported meanwhile get it from its own.
        for module in list(sys.modules.values()):
            if getattr(module, "simulate", None) is real:
                patch.setattr(module, "simulate", recorded)
        yield
