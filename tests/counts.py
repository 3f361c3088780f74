"""Counts of the rules of style, package by package: `python tests/counts.py [CHECKOUT]`.

It reads another checkout as well, also one of the old layout, to compare before and after.
"""

import statistics
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.dialect import files, findings  # noqa: E402 - run as a file, it finds `tests` only now
from tests.support.source import (  # noqa: E402
    comment_lines,
    docstring_lines,
    duplicate_classes,
    modules_of,
    parsed,
)

PACKAGES = ("runtime", "sip_node", "coordinator", "benches", "kernbench")
OTHERS = ("examples", "tests", "docs")
COLUMNS = (
    "package",
    "modules",
    "lines",
    "code",
    "comments",
    "share",
    "median",
    ">300",
    "functions",
    "median",
    ">40",
    ">100 cols",
    "dialect",
)
WIDTHS = (12, 8, 7, 7, 9, 6, 7, 5, 10, 7, 5, 10, 8)


def measures(name: str, paths: list[Path]) -> tuple[object, ...]:
    """The row of a package. The share is that of comments among lines of code and comments."""
    sources = [path.read_text(encoding="utf-8") for path in paths]
    python = [text for path, text in zip(paths, sources, strict=True) if path.suffix == ".py"]
    lengths = [len(text.splitlines()) for text in sources]
    functions = [each.lines for text in python for each in parsed(text).functions]
    comments = sum(map(comment_lines, python))
    filled = sum(bool(line.strip()) for text in python for line in text.splitlines())
    code = filled - sum(map(docstring_lines, python)) - comments
    return (
        name,
        len(paths),
        sum(lengths),
        code,
        comments,
        f"{100 * comments / (code + comments):.1f}%" if python else "",
        round(statistics.median(lengths)),
        sum(length > 300 for length in lengths),
        len(functions),
        round(statistics.median(functions)) if functions else "",
        sum(length > 40 for length in functions),
        sum(len(line) > 100 for text in sources for line in text.splitlines()),
        sum(len(findings(path)) for path in files(paths)),
    )


def main(root: Path) -> None:
    """Print a row for each package and one for all of them, and the names of several classes."""
    by_package = {name: modules_of(root, [name]) for name in PACKAGES}
    shipped = [path for paths in by_package.values() for path in paths]
    rows = [measures(name, paths) for name, paths in by_package.items() if paths]
    rows.append(measures("all of them", shipped))
    for name in OTHERS:
        suffix = "*.md" if name == "docs" else "*.py"
        rows.append(measures(name, sorted((root / name).rglob(suffix))))
    for row in (COLUMNS, *rows):
        print("".join(str(cell).rjust(width) for cell, width in zip(row, WIDTHS, strict=True)))
    duplicates = duplicate_classes(shipped)
    classes = sum(map(len, duplicates.values()))
    print(
        f"{len(duplicates)} names of classes stand for {classes} classes: {', '.join(duplicates)}"
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT)
