"""Draws the figures of the documentation: `python -m kernbench.studies.figures DIRECTORY`.

The directory holds the results files of the studies, as `kernbench --bench STUDY --out DIRECTORY`
writes them. Nothing is simulated: the figures of each study are drawn from its results file, and
the picture of a SIP from the topology file. The same files give the same bytes.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kernbench.studies.ccl_algorithms.definition import AlgorithmStudy
from kernbench.studies.ccl_algorithms.study import MAX_BYTES as ALGORITHM_BYTES
from kernbench.studies.collective_forms import study as collective_forms
from kernbench.studies.collective_forms.definition import FormStudy
from kernbench.studies.kv_transfer.definition import KvTransferStudy
from kernbench.studies.kv_transfer.flags import KvFlags
from kernbench.studies.llama70b_layer import study as llama70b_layer
from kernbench.studies.llama70b_layer.definition import LayerStudy
from kernbench.studies.milestone_1h_ccl.definition import CclStudy
from kernbench.studies.milestone_1h_ccl.study import MAX_BYTES as CCL_BYTES
from kernbench.studies.milestone_1h_gemm.definition import GemmStudy
from kernbench.studies.milestone_1h_gemm.study import DEFAULT_SHAPES
from kernbench.studies.milestone_gqa_llama70b.headline import HeadlineStudy
from kernbench.studies.milestone_gqa_llama70b.study import BATCH, DECODE, PREFILL, SIPS
from kernbench.studies.moe_all_to_all.definition import MoeStudy
from kernbench.studies.moe_all_to_all.points import MoeFlags
from kernbench.studies.parameter_study import ParameterStudy, requires_matplotlib
from kernbench.studies.ring_attention import study as ring_attention
from kernbench.studies.ring_attention.definition import RingAttentionStudy
from runtime.core.errors import KernbenchError
from runtime.model.topology import load_topology

# The parameters only matter to simulate; here the studies read and draw.
STUDIES: tuple[ParameterStudy[Any, Any, Any], ...] = (
    AlgorithmStudy(ALGORITHM_BYTES),
    CclStudy(CCL_BYTES),
    FormStudy(collective_forms.RANKS, collective_forms.MAX_BYTES, collective_forms.ALL_PES_BYTES),
    GemmStudy(DEFAULT_SHAPES),
    HeadlineStudy(prefill=PREFILL, decode=DECODE, sips=SIPS, batch=BATCH),
    KvTransferStudy(KvFlags()),
    LayerStudy(llama70b_layer.CONTEXT, llama70b_layer.TOKENS, llama70b_layer.SIPS),
    MoeStudy(MoeFlags()),
    RingAttentionStudy(
        tokens=ring_attention.TOKENS, sips=ring_attention.SIPS, heads=ring_attention.HEADS
    ),
)


def draw_all(directory: Path) -> Iterator[Path]:
    """Draw everything; yields the files. Raises `UsageError` for files that cannot be accessed."""
    with requires_matplotlib():
        from kernbench.studies.plots import saved
        from kernbench.studies.sip_picture import PICTURE, sip_picture
    yield saved(sip_picture(load_topology()), directory / PICTURE)
    for study in STUDIES:
        results = directory / study.results_name
        yield from study.draw(study.read(results), results.parent)


def main() -> int:
    """The command; returns the exit code."""
    if len(sys.argv) != 2:
        print("usage: python -m kernbench.studies.figures DIRECTORY", file=sys.stderr)
        return 2
    try:
        for path in draw_all(Path(sys.argv[1])):
            print(path)
    except KernbenchError as error:
        print(f"kernbench: error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
