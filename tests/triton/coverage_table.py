"""The table of docs/internals/triton-kernels.md: every test kernel, its time and its descriptors.

    python -m tests.triton.coverage_table

runs each kernel on four PEs, compares it with its reference, writes the table into the page and
prints it.
"""

import os
import sys
from pathlib import Path

os.environ["TRITON_INTERPRET"] = "1"
# Functions count their descriptors, lists do not.
os.environ["KERNBENCH_FOLD"] = "0"

from runtime.core.errors import KernbenchError
from tests.triton.all_kernels import ALL
from tests.triton.cases import Case, run

PAGE = Path(__file__).parents[2] / "docs" / "internals" / "triton-kernels.md"
BEGIN, END = "<!-- table -->\n", "<!-- end of the table -->"
_HEAD = (
    "| kernel | source | runs | equal | simulated ns | % of bound "
    "| descriptors | rows | elements |\n"
    "| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n"
)


def row(case: Case) -> str:
    """The row of a kernel; an error is shown with its text."""
    try:
        outcome = run(case.program)
    except (KernbenchError, RuntimeError, TypeError, ValueError) as error:
        reason = str(error).partition(": ")[2].partition("\n")[0] or type(error).__name__
        return f"| {case.name} | {case.source} | {reason} | - | - | - | - | - | - |\n"
    equal = "yes" if outcome.error <= 1 else f"{outcome.error:.1f} tolerances"
    boxes, rows, elements = outcome.counts
    return (
        f"| {case.name} | {case.source} | yes | {equal} | {outcome.time_ns:,.1f} "
        f"| {outcome.of_bound:.1%} | {boxes} | {rows} | {elements} |\n"
    )


def main() -> None:
    table = _HEAD + "".join(map(row, ALL))
    page = PAGE.read_text(encoding="utf-8")
    before, rest = page.split(BEGIN)
    _, after = rest.split(END)
    PAGE.write_text(f"{before}{BEGIN}\n{table}\n{END}{after}", encoding="utf-8")
    sys.stdout.write(table)


if __name__ == "__main__":
    main()
