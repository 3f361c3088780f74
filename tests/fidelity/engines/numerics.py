"""Group k: results of `tl` on a chip against exact arithmetic and the mock runtime.

Also: times do not depend on the data.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby, zip_longest

import numpy as np

from kernbench import torch
from kernbench.oracle.checks.check import Check, Relation
from kernbench.oracle.theory.topology_file import TopologyFile
from kernbench.simulation import Simulation, simulate
from runtime.core.rng import seeded
from runtime.language import mock
from runtime.language.value import Array
from runtime.model.placement import ONE_PE
from runtime.model.topology import parse_topology
from tests.fidelity.engines.numbers import NumericCase, cases, ulp

TWICE_ROUNDED = 0.01
"""Excess of the error of a 16-bit result over one rounding: it is rounded to f32 first."""


def numerics(file: TopologyFile, seed: int) -> list[Check]:
    """All checks of the group."""
    everything = cases(seeded(seed), file["pe.tile.k"])
    file = file.with_values({"sip.cube_mesh": {"w": 1, "h": 1}})
    world = _simulated(file, everything, data=True)
    results: list[Array] = world.returned[0]
    return [
        *_exactness(everything, results),
        _mocked(file, everything, results),
        _untimed(file, everything, world),
    ]


def _exactness(everything: Sequence[NumericCase], results: Sequence[Array]) -> Iterator[Check]:
    """One check per type and family of operations, for the element with the largest error."""
    for (dtype, family), members in groupby(
        zip(everything, results, strict=True),
        key=lambda member: (member[0].dtype, member[0].family),
    ):
        group = list(members)
        check_id = f"k.{dtype.name}.{family}"
        if group[0][0].result.is_floating_point:
            share, name = max((_share(case, result), case.name) for case, result in group)
            worst = f"{family} of {dtype.name}, worst of {len(group)} operations: {name}"
            formula = "ulp/2 + steps 2^-24 sum |a b|" if family == "gemm" else "ulp/2: one rounding"
            yield Check(
                id=check_id,
                text=f"{worst}: largest error / error bound",
                formula=formula,
                expected=1,
                measured=share,
                tolerance=TWICE_ROUNDED,
                unit="",
                relation=Relation.AT_MOST,
            )
        else:
            wrong = sum(
                int(np.count_nonzero(result != np.array(case.exact))) for case, result in group
            )
            operations = f"{family} of {dtype.name}, {len(group)} operations over the whole range"
            yield Check(
                id=check_id,
                text=f"{operations}: wrong elements",
                formula="integers modulo 2^bits",
                expected=0,
                measured=wrong,
                unit="elements",
            )


def _share(case: NumericCase, result: Array) -> float:
    """The largest error; 1 is half a unit in the last place plus the slack of the case."""
    rows = zip_longest(map(float, result), case.exact, case.slack, fillvalue=0.0)
    return max(
        abs(got - exact) / (ulp(case.result, exact) / 2 + slack) for got, exact, slack in rows
    )


def _mocked(
    file: TopologyFile, everything: Sequence[NumericCase], results: Sequence[Array]
) -> Check:
    topology, different = parse_topology(file.text, "topology", 1), 0
    for case, result in zip(everything, results, strict=True):
        out = np.zeros_like(result)
        mock.launch(case.kernel, out, *case.operands, topology=topology)
        different += int(np.count_nonzero(out.view(np.uint8) != result.view(np.uint8)))
    return Check(
        id="k.mock",
        text=f"{len(everything)} operations in the mock runtime: bytes that differ from the chip's",
        formula="bit for bit",
        expected=0,
        measured=different,
        unit="B",
    )


def _untimed(file: TopologyFile, everything: Sequence[NumericCase], world: Simulation) -> Check:
    """Engine, operation, start and end of all records: the same with data and without."""

    def entries(of: Simulation) -> list[tuple[str, str, int, int]]:
        return [
            (record.engine, record.name, record.start_ps, record.end_ps) for record in of.records[0]
        ]

    with_data, without = entries(world), entries(_simulated(file, everything, data=False))
    different = sum(one != other for one, other in zip_longest(with_data, without))
    return Check(
        id="k.no-data",
        text=f"of {len(with_data):,} records of these operations, those that differ without data",
        formula="the same times",
        expected=0,
        measured=different,
        unit="records",
    )


def _simulated(file: TopologyFile, everything: Sequence[NumericCase], *, data: bool) -> Simulation:
    """Each case as one launch on PE 0; the rank returns the results, flattened."""

    def program(_rank: int) -> list[Array]:
        return [_launched(case) for case in everything]

    return simulate(program, 1, topology=file.text, data=data)


def _launched(case: NumericCase) -> Array:
    out = torch.empty(len(case.exact), dtype=case.result, dp=ONE_PE)
    operands = [torch.from_numpy(operand, dp=ONE_PE) for operand in case.operands]
    torch.launch(case.name, case.kernel, out, *operands)
    return out.numpy()
