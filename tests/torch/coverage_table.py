"""The pages docs/pytorch-coverage.md, what scripts of PyTorch use, and whether it works, and
docs/internals/torch-operators.md, its operators.

    python -m tests.torch.coverage_table [features | models | published | operators] ...

runs every feature on CPUs with gloo and on the device, compares the results, does the same with
whole models (`models_table`), with published scripts where a checkout of them is named
(`published_table`) and with the operators of OpInfo (`operator_table`), and writes the pages.
Arguments name parts of them, and the others do not change.

A part is written when it is measured. What this machine lacks is named, and its old rows stay; so
does a part with a failure, while the others are measured. A run that is cut goes on where it ended
when it is started again (`coverage_record`). At the end it prints the counts of the committed pages
beside those of the new ones.
"""

import re
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from tests.torch import models_table, operator_table, published_table
from tests.torch.coverage_counts import comparison
from tests.torch.coverage_record import CoverageProgram, CoverageRecord, ProgramError

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "pytorch-coverage.md"
OPERATORS = ROOT / "docs" / "internals" / "torch-operators.md"
PROGRAMS = Path(__file__).parent / "programs"
PROGRAM = PROGRAMS / "coverage" / "run.py"
GLOO_WORKER = PROGRAMS / "gloo_worker.py"
RECORDS = ROOT / "build" / "torch-coverage"
THEMES = {"Language models": 1, "Training": 1, "Images, sequences, graphs": 1, "Several ranks": 2}
"""The ranks of each theme."""
MODULES = {
    "Language models": "language_models",
    "Training": "training",
    "Images, sequences, graphs": "other_models",
    "Several ranks": "distributed",
}
"""The module of each theme."""
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


def feature_names() -> dict[str, list[str]]:
    """The features of each theme, in the order of the page."""
    names = dict[str, list[str]]()
    for theme, module in MODULES.items():
        source = (PROGRAM.parent / f"{module}.py").read_text("utf-8")
        names[theme] = re.findall(r"^@feature\(THEME, [\"'](.*)[\"']\)$", source, re.MULTILINE)
    return names


def measured(record: CoverageRecord, themes: Sequence[str]) -> dict[str, list[Row]]:
    """Run the features of some themes on both devices."""
    _run(record, "features gloo", themes, _gloo_command)
    expected = {theme: _saved("gloo", theme, record.folder) for theme in themes}
    found = on_device(record, themes)
    return {
        theme: [
            _row(name, [each[name] for each in expected[theme]], found[theme]) for name in names
        ]
        for theme, names in feature_names().items()
        if theme in themes
    }


def on_device(
    record: CoverageRecord, themes: Sequence[str], **environment: str
) -> dict[str, list[dict]]:
    """Run the features of some themes on the device; the outcomes of each rank by feature."""
    _run(record, "features", themes, _device_command, environment)
    return {theme: _saved("ahbm", theme, record.folder) for theme in themes}


def _saved(backend: str, theme: str, folder: Path) -> list[dict]:
    names = [f"{backend} {theme} {rank}" for rank in range(THEMES[theme])]
    return [torch.load(folder / each) for each in names]


def _run(
    record: CoverageRecord,
    part: str,
    themes: Sequence[str],
    command: Callable[[int], Sequence[str]],
    environment: Mapping[str, str] | None = None,
) -> None:
    programs = [
        CoverageProgram(
            command=(*command(THEMES[theme]), str(PROGRAM), theme, str(record.folder)),
            items=names,
            environment=environment or {},
        )
        for theme, names in feature_names().items()
        if theme in themes
    ]
    record.lines(part, programs)


def _gloo_command(ranks: int) -> Sequence[str]:
    torchrun = ("torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks))
    return ("env", "BACKEND=gloo", sys.executable, "-m", *torchrun, str(GLOO_WORKER))


def _device_command(ranks: int) -> Sequence[str]:
    return (sys.executable, str(ROOT / "launch.py"), "--sips", str(ranks), "--no-trace")


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


def parts_of(text: str) -> dict[str, str]:
    """The parts of a page, each with its heading; one that the page does not have is empty."""
    following = dict[str, str]()
    for name, heading in reversed(HEADINGS.items()):
        text, begin, part = text.partition(heading)
        following[name] = begin + part
    return {"features": text, **{name: following[name] for name in HEADINGS}}


def _renewed(part: str, record: CoverageRecord, old: str) -> str:
    if part == "features":
        return page(measured(record, tuple(THEMES)))
    if part == "models":
        return "\n" + models_table.section(record, old)
    if part == "published":
        return "\n" + published_table.section(record, old)
    return operator_table.page(operator_table.measured(record))


def _write(part: str, record: CoverageRecord) -> None:
    """Measure a part, and write it into its page."""
    if part == "operators":
        OPERATORS.write_text(_renewed(part, record, ""), "utf-8")
        return
    old = parts_of(PAGE.read_text("utf-8"))[part]
    new = _renewed(part, record, old)
    PAGE.write_text("".join((parts_of(PAGE.read_text("utf-8")) | {part: new}).values()), "utf-8")


def _committed(page_file: Path) -> str:
    name = page_file.relative_to(ROOT).as_posix()
    command = ["git", "show", f"HEAD:{name}"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout


def main() -> int:
    """Write the parts of the pages that the arguments name, by default all, and print the counts;
    1 where a part has failed or is cut.
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    record = CoverageRecord.of_sources(RECORDS)
    parts = sys.argv[1:] or (*parts_of(""), "operators")
    failures = list[ProgramError]()
    for part in parts:
        try:
            _write(part, record)
        except ProgramError as failure:
            failures.append(failure)
        except KeyboardInterrupt:
            record.note(f"{part}: cut; the same command goes on from here")
            return 1
    committed, new = (
        [read(each) for each in (PAGE, OPERATORS)]
        for read in (_committed, lambda each: each.read_text("utf-8"))
    )
    sys.stdout.write(comparison(committed, new))
    for failure in failures:
        sys.stdout.write(f"not renewed: {failure}\n")
    if not failures:
        record.clear(parts)
    sys.stdout.write(f"{record.elapsed_min:.0f} minutes\n")
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
