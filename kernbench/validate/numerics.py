"""Group k: the numbers of `tl` on a chip, against exact arithmetic and the mock runtime; and that they change no time."""

from collections.abc import Iterator, Sequence
from itertools import groupby, zip_longest

import numpy as np

from kernbench.theory.topology_file import TopologyFile
from kernbench.validate.check import Check, Comparison
from kernbench.validate.numbers import Case, cases, ulp
from runtime import torch
from runtime.core.rng import seeded
from runtime.language import mock
from runtime.language.value import Array
from runtime.model.topology import parse_topology
from sip_node.local_run import World, simulate

TWICE_ROUNDED = 0.01
"""What an error may be more than one rounding to a type of 16 bits: its result is rounded to f32 before."""


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


def _exactness(everything: Sequence[Case], results: Sequence[Array]) -> Iterator[Check]:
    """One check for each type and family, of its worst element."""
    for (dtype, family), members in groupby(
        zip(everything, results, strict=True),
        key=lambda member: (member[0].dtype, member[0].family),
    ):
        group = list(members)
        check_id = f"k.{dtype.name}.{family}"
        if dtype.is_floating_point:
            share, name = max((_share(case, result), case.name) for case, result in group)
            says = f"{family} of {dtype.name}, worst of {len(group)} operations {name}: largest error over what it may be"
            formula = "ulp/2 + steps 2^-24 sum |a b|" if family == "gemm" else "ulp/2: one rounding"
            yield Check(check_id, says, formula, 1, share, TWICE_ROUNDED, "", Comparison.AT_MOST)
        else:
            wrong = sum(
                int(np.count_nonzero(result != np.array(case.exact))) for case, result in group
            )
            says = f"{family} of {dtype.name}, {len(group)} operations over the whole range: elements that are wrong"
            yield Check(check_id, says, "integers modulo 2^bits", 0, wrong, 0, "elements")


def _share(case: Case, result: Array) -> float:
    """The largest error, where 1 is half a unit in the last place and the slack of the case."""
    rows = zip_longest(map(float, result), case.exact, case.slack, fillvalue=0.0)
    return max(
        abs(got - exact) / (ulp(case.result, exact) / 2 + slack) for got, exact, slack in rows
    )


def _mocked(file: TopologyFile, everything: Sequence[Case], results: Sequence[Array]) -> Check:
    topology, different = parse_topology(file.text, "topology", 1), 0
    for case, result in zip(everything, results, strict=True):
        out = np.zeros_like(result)
        mock.launch(case.kernel, out, *case.operands, topology=topology)
        different += int(np.count_nonzero(out.view(np.uint8) != result.view(np.uint8)))
    says = f"{len(everything)} operations in the mock runtime: bytes that differ from the chip's"
    return Check("k.mock", says, "bit for bit", 0, different, 0, "B")


def _untimed(file: TopologyFile, everything: Sequence[Case], world: World) -> Check:
    """Engine, operation, start and end of every record, with data and without."""

    def entries(of: World) -> list[tuple[str, str, int, int]]:
        return [
            (record.engine, record.name, record.start_ps, record.end_ps) for record in of.records[0]
        ]

    with_data, without = entries(world), entries(_simulated(file, everything, data=False))
    different = sum(one != other for one, other in zip_longest(with_data, without))
    says = f"of {len(with_data):,} records of the same operations, those that differ without data"
    return Check("k.no-data", says, "the same times", 0, different, 0, "records")


def _simulated(file: TopologyFile, everything: Sequence[Case], *, data: bool) -> World:
    """Every case as a launch of its own on PE 0; the rank returns the results, each in one axis."""

    def program(_rank: int) -> list[Array]:
        return [_launched(case) for case in everything]

    return simulate(program, 1, topology=file.text, data=data)


def _launched(case: Case) -> Array:
    out = torch.empty(len(case.exact), dtype=case.result)
    torch.launch(case.name, case.kernel, out, *map(torch.from_numpy, case.operands))
    return out.numpy()
