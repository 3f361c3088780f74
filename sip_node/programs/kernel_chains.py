"""The chains of a running kernel: one command queues all operations of a chain."""

from collections.abc import Sequence

import numpy as np

from runtime.language.chain import ChainCall
from runtime.language.value import Value
from sip_node.chip.completion import Completion, completed
from sip_node.chip.pe.vector_chains import ChainRun, VectorChains
from sip_node.programs.kernel_issue import CommandIssuer
from sip_node.programs.kernel_operation import Operation, Operations


def start_chain(
    call: ChainCall,
    results: Sequence[Value],
    chains: VectorChains,
    issuer: CommandIssuer,
    operations: Operations,
) -> Operation:
    """Queue a chain whose results go to `results`; the kernel goes on when it is queued."""
    chain, over = call.chain, [out for out in call.outs if out is not None]
    # Without elements there is no command, and no time.
    run = chains.prepared(chain, results) if chain.width else None
    for result, value in zip(results, call.values, strict=True):
        if value.data is not None:
            # A copy: the value may be a view of another result.
            result.fill(np.array(value.data, order="C"))
    returned = call.returned(results)
    if run is None:
        return operations.started(completed(None), returned, over=over)

    def queue(run: ChainRun) -> Completion[None]:
        chains.queue(run)
        return completed(None)

    issuer.issue("chain", queue, run)
    return operations.started(
        run.done,
        returned,
        reads=chain.sources,
        over=over,
        earliest_end_ps=lambda: chains.earliest_end_ps(run),
    )
