"""Measures one point: the transfer without and with overlap, with every element checked."""

from collections.abc import Sequence

import numpy as np

from kernbench.oracle.theory.topology_file import TopologyFile
from kernbench.simulation import no_records, simulate
from kernbench.studies.kv_transfer.points import KvPoint
from kernbench.studies.kv_transfer.program import (
    KvOutcome,
    KvTimes,
    kv_program,
    layer_elements,
    made_elements,
)
from kernbench.studies.kv_transfer.rows import KvRow
from kernbench.studies.kv_transfer.theory import link_loads, transfer_bounds
from runtime.language.value import Array


def measure(point: KvPoint) -> KvRow:
    """Simulate one point."""
    file, made = TopologyFile.of(point.topology), made_elements(point) if point.has_data else None
    world = simulate(
        kv_program(point, made),
        point.sips,
        topology=point.topology,
        data=point.has_data,
        on_records=no_records,
    )
    outcomes: list[KvOutcome] = [outcome for _, outcome in sorted(world.returned.items())]
    layers_ps, after_ps = _times([outcome.after for outcome in outcomes])
    beside_layers_ps, arrivals_ps = _times([outcome.beside for outcome in outcomes])
    return KvRow(
        prefill=point.prefill,
        decode=point.decode,
        order=point.order,
        tokens=point.shape.context,
        new_tokens=point.shape.tokens,
        layers_ps=layers_ps,
        after_ps=max(after_ps),
        beside_prefill_ps=beside_layers_ps[-1],
        arrivals_ps=arrivals_ps,
        links=link_loads(file, point.moves, point.shape),
        bounds=transfer_bounds(file, point.moves, point.shape),
        wrong=None if made is None else wrong_elements(point, made, outcomes),
    )


def wrong_elements(point: KvPoint, made: Array, outcomes: Sequence[KvOutcome]) -> int:
    """Elements of K and V that the SIPs of the decode have wrong, in both runs."""
    wrong = 0
    for move in point.moves:
        for first, times in zip((0, point.layers), outcomes[move.target], strict=True):
            for layer in range(point.layers):
                exact = layer_elements(made[move.heads], first + layer)
                wrong += int(np.count_nonzero(times.received[layer, move.source] != exact))
    return wrong


def _times(found: Sequence[KvTimes]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The end of each layer on its last SIP, and its last arrival, once all SIPs have begun."""
    began_ps = max(times.began_ps for times in found)

    def last(columns: list[tuple[int, ...]]) -> tuple[int, ...]:
        return tuple(max(ends) - began_ps for ends in zip(*columns, strict=True))

    return (
        last([times.layers_ps for times in found if times.layers_ps]),
        last([times.arrivals_ps for times in found if times.arrivals_ps]),
    )
