"""The pages docs/pytorch-coverage.md, what scripts of PyTorch use, and whether it works, and
docs/internals/torch-operators.md, its operators.

    python -m tests.torch.coverage_table [features | models | published | operators] ...

runs every feature on CPUs with gloo and on the device, compares the results, does the same with
whole models (`models_table`), with published scripts where a checkout of them is named
(`published_table`) and with the operators of OpInfo (`operator_table`), writes the pages and prints
them. Arguments name parts of them, and the others do not change.
"""

import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from tests.torch import models_table, operator_table, published_table

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "pytorch-coverage.md"
OPERATORS = ROOT / "docs" / "internals" / "torch-operators.md"
PROGRAMS = Path(__file__).parent / "programs"
PROGRAM = PROGRAMS / "coverage" / "run.py"
THEMES = {"Language models": 1, "Training": 1, "Images, sequences, graphs": 1, "Several ranks": 2}
"""The ranks of each theme."""
OUTCOMES = ("works", "falls back", "error", "other results")
SHARES = {torch.float16: 2e-2, torch.bfloat16: 2e-2}
"""Greatest differences in parts of the largest element; others are of float32, and rounded 1,000
times at most, 2^-24 each."""
_DEFAULT_SHARE = 1000 * 2**-24
_HEAD = """# What works of PyTorch?

Pieces of scripts as they are published, each run on a CPU (those of several ranks with gloo) and on
the device, with the same seeds. *works*: every operator ran on the device, by a kernel, a formula
or PyTorch's decomposition, and the results are equal, in float32 to 6e-5 of the largest element.
*falls back*: the results are equal, and the named operators ran on the host, which took the given
share of the simulated time. The pieces are in
[tests/torch/programs/coverage](../tests/torch/programs/coverage). They are small: in larger models
the share of the host is less where it computes few elements.

The page is written by `make torch-coverage`, and tested to be true: features first, then [whole
models](#models) and [published scripts](#distributed-scripts-of-pytorchs-examples). The operators
of PyTorch's own database have [a page of their own](internals/torch-operators.md).
"""
HEADINGS = {
    "models": "\n## Models\n",
    "published": "\n## Distributed scripts of PyTorch's examples\n",
}
"""The headings of the parts of the page that follow the features."""


@dataclass(frozen=True)
class Row:
    """A feature, its outcome, and the operators on the host with their share of the time."""

    name: str
    outcome: str
    operators: tuple[str, ...] = ()
    share: float = 0.0

    @property
    def text(self) -> str:
        """The line of the table."""
        listed = ", ".join(f"`{each}`" for each in self.operators)
        detail = f"{listed}; {100 * self.share:.0f} %" if self.operators else ""
        return f"| {self.name} | {self.outcome} | {detail} |"


def measured(theme: str) -> list[Row]:
    """Run the features of a theme on both devices."""
    ranks = THEMES[theme]
    with TemporaryDirectory() as folder:
        _on_gloo([str(PROGRAM), theme, folder], ranks)
        expected = _saved("gloo", theme, folder)
    found = on_device(theme)
    return [_row(name, [each[name] for each in expected], found) for name in expected[0]]


def on_device(theme: str, **environment: str) -> list[dict]:
    """Run the features of a theme on the device; the outcomes of each rank by feature."""
    with TemporaryDirectory() as folder:
        launch = [sys.executable, str(ROOT / "launch.py"), "--sips", str(THEMES[theme])]
        _run([*launch, "--no-trace", str(PROGRAM), theme, folder], environment)
        return _saved("ahbm", theme, folder)


def _saved(backend: str, theme: str, folder: str) -> list[dict]:
    names = [f"{backend} {theme} {rank}" for rank in range(THEMES[theme])]
    return [torch.load(Path(folder) / each) for each in names]


def page(rows: dict[str, list[Row]]) -> str:
    """The text of the page."""
    everything = [each for listed in rows.values() for each in listed]
    outcomes = [each.outcome.partition(":")[0] for each in everything]
    counts = ", ".join(
        f"{outcomes.count(outcome)} {outcome}" for outcome in OUTCOMES if outcome in outcomes
    )
    text = f"{_HEAD}\n{len(everything)} features: {counts}.\n"
    for theme, listed in rows.items():
        ranks = THEMES[theme]
        where = f"{ranks} SIPs" if ranks > 1 else "1 SIP"
        text += (
            f"\n## {theme} ({where})\n\n| feature | outcome | on the host |\n| --- | --- | --- |\n"
        )
        text += "".join(f"{each.text}\n" for each in listed)
    return text


def _row(name: str, expected: Sequence[dict], found: Sequence[dict]) -> Row:
    own = [each[name] for each in found]
    for wanted, actual in zip(expected, own, strict=True):
        assert not isinstance(wanted["results"], str), f"{name} on a CPU: {wanted['results']}"
        if isinstance(actual["results"], str):
            return Row(name, f"error: {actual['results'][:160].replace('|', '/')}")
        if not _equal(wanted["results"], actual["results"]):
            return Row(name, "other results")
    operators = tuple(sorted({each for one in own for each in one["fallbacks"]}))
    share = max(each["host_share"] for each in own)
    return Row(name, "falls back" if operators else "works", operators, share)


def _equal(expected: Sequence[torch.Tensor], found: Sequence[torch.Tensor]) -> bool:
    return len(expected) == len(found) and all(
        a.dtype == b.dtype and a.shape == b.shape and _differ_by(a, b) <= _tolerated(a)
        for a, b in zip(expected, found, strict=True)
    )


def _differ_by(expected: torch.Tensor, found: torch.Tensor) -> float:
    difference = (expected.double() - found.double()).abs()
    return difference[expected != found].max().item() if (expected != found).any() else 0.0


def _tolerated(expected: torch.Tensor) -> float:
    if not expected.is_floating_point() or not expected.numel():
        return 0.0
    largest = expected.double().abs().max().item()
    return SHARES.get(expected.dtype, _DEFAULT_SHARE) * largest


def _on_gloo(words: Sequence[str], ranks: int) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    shared = {"BACKEND": "gloo", "WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1"}
    started = [
        subprocess.Popen(
            [sys.executable, str(PROGRAMS / "gloo_worker.py"), *words],
            env={**os.environ, **shared, "MASTER_PORT": port, "RANK": str(rank)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for rank in range(ranks)
    ]
    assert [each.wait() for each in started] == [0] * ranks


def _run(command: Sequence[str], environment: dict[str, str]) -> None:
    with TemporaryDirectory() as out:
        script = command.index(str(PROGRAM))
        options = [*command[:script], "--out", out, *command[script:]]
        done = subprocess.run(
            options,
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, **environment},
        )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]


def parts_of(text: str) -> dict[str, str]:
    """The parts of a page, each with its heading; one that the page does not have is empty."""
    following = dict[str, str]()
    for name, heading in reversed(HEADINGS.items()):
        text, begin, part = text.partition(heading)
        following[name] = begin + part
    return {"features": text, **{name: following[name] for name in HEADINGS}}


def _renewed(part: str) -> str:
    if part == "features":
        return page({theme: measured(theme) for theme in THEMES})
    if part == "models":
        return "\n" + models_table.section(models_table.measured())
    return "\n" + published_table.section(published_table.all_measured())


def main() -> None:
    """Write the parts of the pages that the arguments name, by default all that this machine can
    measure, and print them.
    """
    parts = parts_of(PAGE.read_text("utf-8"))
    for name in sys.argv[1:] or (*parts, "operators"):
        if name == "operators":
            OPERATORS.write_text(operator_table.page(operator_table.measured()), "utf-8")
        elif name != "published" or published_table.CHECKOUT in os.environ:
            parts[name] = _renewed(name)
    PAGE.write_text("".join(parts.values()), "utf-8")
    for page_file in (PAGE, OPERATORS):
        sys.stdout.write(page_file.read_text("utf-8"))


if __name__ == "__main__":
    main()
