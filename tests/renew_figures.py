"""Draws the figures of the documentation: `python -m tests.renew_figures DIRECTORY`.

The directory holds the results files of the studies, as `kernbench --bench STUDY --out DIRECTORY`
writes them. Nothing is simulated: the figures of each study are drawn from its results file, and
the picture of a SIP from the topology file, that of products of PyTorch's device from the results
of `tests.torch.product_table`. The same files give the same bytes.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

from kernbench.studies.catalogue import STUDIES, study_class
from kernbench.studies.parameter_study import requires_matplotlib
from runtime.core.errors import KernbenchError
from runtime.model.topology import load_topology


def draw_all(directory: Path) -> Iterator[Path]:
    """Draw everything; yields the files. Raises `UsageError` for files that cannot be accessed."""
    with requires_matplotlib():
        from kernbench.studies.plots import saved
        from tests.support import product_picture
        from tests.support.sip_picture import PICTURE, sip_picture
    yield saved(sip_picture(load_topology()), directory / PICTURE)
    times = product_picture.read_times(directory / product_picture.RESULTS)
    yield saved(product_picture.product_picture(times), directory / product_picture.PICTURE)
    # The flags only matter to simulate; here the studies read and draw.
    for study in (study_class(flags)(flags()) for flags in STUDIES):
        results = directory / study.results_name
        yield from study.draw(study.read(results), results.parent)


def main() -> int:
    """The command; returns the exit code."""
    if len(sys.argv) != 2:
        print("usage: python -m tests.renew_figures DIRECTORY", file=sys.stderr)
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
