"""The times of products of PyTorch's device, by their rows and weights.

    python -m tests.torch.product_table [DEPTHxCOLUMNS ...]

simulates them without data, writes docs/figures/torch_products.json, the table of
docs/internals/torch-device.md and the figure, and prints the table. Arguments name weights, and the
results of the others do not change.
"""

import re
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from math import prod
from pathlib import Path
from tempfile import TemporaryDirectory

from kernbench.studies.plots import saved
from tests.support.product_picture import (
    PICTURE,
    RESULTS,
    ProductTime,
    product_picture,
    read_times,
    write_times,
)

ROOT = Path(__file__).parents[2]
FIGURES, PAGE = ROOT / "docs" / "figures", ROOT / "docs" / "internals" / "torch-device.md"
PROGRAM = Path(__file__).parent / "programs" / "products.py"
ROWS = (1, 2, 3, 5, 8, 13, 16, 31, 32, 64, 100, 128, 200, 256, 384, 512)
WEIGHTS = ((768, 768), (768, 3072), (1000, 1000), (4096, 4096), (4096, 11008), (768, 50257))
"""The depth and the columns of the weights."""
_PARALLEL = 2
_LINE = re.compile(r"^= (\d+)x(\d+)x(\d+) (\d+) (\d+)$", re.MULTILINE)
_TABLE = re.compile(r"^\| rows \|.*\n(?:\|.*\n)+", re.MULTILINE)


def measured(weight: tuple[int, int]) -> list[ProductTime]:
    """The products of all rows with a weight."""
    depth, columns = weight
    sizes = [f"{rows}x{depth}x{columns}" for rows in ROWS]
    with TemporaryDirectory() as folder:
        options = ["--sips", "1", "--no-data", "--no-trace", "--timeout", "600", "--out", folder]
        words = [sys.executable, str(ROOT / "launch.py"), *options, str(PROGRAM), "times", *sizes]
        done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    lines = _LINE.findall(done.stdout)
    if len(lines) != len(sizes):
        raise SystemExit(done.stdout[-2000:] + done.stderr[-2000:])
    return [ProductTime(*map(int, each)) for each in lines]


def table(times: Sequence[ProductTime]) -> str:
    """A line for each number of rows: microseconds and the share of the bound by weights."""
    by_size = {each[:3]: each for each in times}
    names = [f"{depth} x {columns}" for depth, columns in WEIGHTS]
    lines = ["| rows | " + " | ".join(names) + " |", "| ---:" * (1 + len(names)) + " |"]
    for rows in ROWS:
        cells = [
            f"{each.time_ns / 1e3:.2f}, {100 * each.bound_ns / each.time_ns:.0f} %" if each else ""
            for each in (by_size.get((rows, *weight)) for weight in WEIGHTS)
        ]
        lines.append(f"| {rows} | " + " | ".join(cells) + " |")
    return "".join(f"{line}\n" for line in lines)


def main() -> None:
    """The command."""
    given = [tuple(map(int, each.split("x"))) for each in sys.argv[1:]]
    chosen = [weight for weight in WEIGHTS if not given or weight in given]
    # The largest weights take most of the time: they begin first.
    with ThreadPoolExecutor(_PARALLEL) as pool:
        times = [
            each for line in pool.map(measured, sorted(chosen, key=prod)[::-1]) for each in line
        ]
    if given:
        times += [each for each in read_times(FIGURES / RESULTS) if each[1:3] not in chosen]
    times.sort(key=lambda each: (WEIGHTS.index(each[1:3]), each.rows))
    write_times(FIGURES / RESULTS, times)
    saved(product_picture(times), FIGURES / PICTURE)
    text = table(times)
    page, count = _TABLE.subn(lambda _: text, PAGE.read_text())
    if count != 1:
        raise SystemExit(f"{PAGE} has {count} tables of rows, not 1")
    PAGE.write_text(page)
    print(text, end="")


if __name__ == "__main__":
    main()
