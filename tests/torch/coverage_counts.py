"""Counts of the pages of coverage, those of the committed pages beside those of new ones."""

import re
from collections.abc import Sequence

from tests.torch.operator_table import KINDS

COLUMNS = ("results", "gradients", "results, others", "gradients, others")
"""The columns of the table of operators; others are no linear algebra, FFTs, special functions."""
ON_DEVICE = ("by kernels and formulas", "decomposed")
ON_HOST = ("partly on the host", "on the host")
_FEATURES = re.compile(r"^\d+ features: (.*)\.$", re.MULTILINE)
_MODEL = re.compile(r"^\| .* \| (\S+e\S+) \| (\S+e\S+) \| \w* \| (\S+) % \| .*$", re.MULTILINE)
_SCRIPT = re.compile(r"^\| \S+\.py.* \| \d+ \| ([a-z]+)", re.MULTILINE)


def comparison(committed: Sequence[str], new: Sequence[str]) -> str:
    """A line for each count of the two pages, the features and the operators."""
    before, after = counts(*committed), counts(*new)
    width = max(map(len, after))
    lines = [
        ("", "committed", "new"),
        *((name, before.get(name, "-"), after[name]) for name in after),
    ]
    return "".join(f"{name:{width}}  {old:>32}  {own:>32}\n" for name, old, own in lines)


def counts(page: str, operators: str) -> dict[str, str]:
    """The counts of the page of features and of that of operators, by their names."""
    features = _FEATURES.search(page)
    models = [[float(each) for each in row] for row in _MODEL.findall(page)]
    scripts = _SCRIPT.findall(page)
    found = {"features": features[1] if features else "-", "models": str(len(models))}
    names = ("largest difference of losses", "... of gradients", "largest share of the host, %")
    for name, column in zip(names, zip(*models, strict=True), strict=False):
        found[name] = str(max(column))
    found["scripts of pytorch/examples as on gloo"] = f"{scripts.count('as')} of {len(scripts)}"
    return found | _of_operators(operators)


def _of_operators(page: str) -> dict[str, str]:
    rows = {
        kind: [int(each) for each in numbers.split(" | ")]
        for kind in KINDS
        for numbers in re.findall(rf"^\| {kind}: .*? \| ([\d |]+) \|$", page, re.MULTILINE)
    }
    if rows.keys() != KINDS.keys():
        return {}
    counted = dict[str, str]()
    for index, column in enumerate(COLUMNS):
        total = sum(row[index] for row in rows.values())
        own = sum(rows[kind][index] for kind in ON_DEVICE)
        counted[f"wholly on the device, {column}"] = f"{own} of {total}"
    for index in (2, 3):
        counted[f"on the host, {COLUMNS[index]}"] = str(sum(rows[kind][index] for kind in ON_HOST))
    for kind in ("other results", "errors"):
        counted[kind] = f"{rows[kind][0]}, gradients {rows[kind][1]}"
    return counted
