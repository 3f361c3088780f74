"""Rows of the study of closed forms that were not simulated: every time is a formula."""

from kernbench.studies.collective_forms.study import FormResults, FormRow


def row(collective: str, pes: int, ranks: int, nbytes: int, ratio: float = 1.1) -> FormRow:
    """A form of 1 ns for each 128 bytes; tensors of 1 MiB and more are without data."""
    form_ps = nbytes * 1000 / 128
    return FormRow(
        collective=collective,
        pes=pes,
        ranks=ranks,
        nbytes=nbytes,
        time_ps=round(ratio * form_ps),
        form_ps=form_ps,
        skew_ps=0,
        wrong=0 if nbytes < 1 << 20 else None,
    )


def results() -> FormResults:
    """Two collectives on two numbers of ranks, one of them on all PEs as well."""
    return FormResults(
        version=1,
        topology="topology.yaml",
        topology_hash="0" * 64,
        rows=(
            *(row("all_reduce", 1, ranks, size) for ranks in (2, 4) for size in (1 << 16, 1 << 20)),
            row("broadcast", 1, 2, 1 << 16),
            row("all_reduce", 128, 2, 1 << 20, 1.05),
        ),
    )
