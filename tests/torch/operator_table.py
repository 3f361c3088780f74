"""The table of PyTorch's operators by where they run, from its own database of them, OpInfo: the
page docs/internals/torch-operators.md, which `coverage_table` writes.
"""

import re
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.torch.coverage_record import CoverageProgram, CoverageRecord

ROOT = Path(__file__).parents[2]
PROGRAM = Path(__file__).parent / "programs" / "opinfo.py"
SAMPLES = 2
"""Samples of each operator: the first one and another one."""
SHARES = 2
"""The operators are divided, so that two processes run them."""
OPTIONS = ("--procs", "1", "--no-trace", "--timeout", "300")
REFUSAL = re.compile(
    r"no result on a CPU: |no sample|NotImplementedError: aten::\w+: 'ahbm' has no sparse tensors"
)
"""Beginnings of outcomes without a comparison."""
LINE = re.compile(r"^= (.*?) \| (.*) \| (.*) \| (.*)$", re.MULTILINE)
_RAN = re.compile(r"device (\d+); decomposed ?(.*); host ?(.*)")
KINDS = {
    "by kernels and formulas": "every operator has a kernel or a formula of the device",
    "decomposed": "PyTorch's decomposition computes some by kernels of the device",
    "partly on the host": "some run on the host, others on the device",
    "on the host": "all run on the host",
    "other results": "a result differs from that of a CPU",
    "errors": "an error where a CPU has a result",
}
_PLACES = tuple(KINDS)
_FAMILY = re.compile(
    r"(linalg|fft|special|sparse|polygamma)\b|cholesky|lu\b|lu_|qr\b|svd|pca|geqrf|ormqr|orgqr"
    r"|householder|inverse|pinverse|triangular_solve|lobpcg|logdet|slogdet|i?stft|matrix_exp"
    r"|(di|lg|mvlg|ig)ammac?|lgamma|digamma|igammac?|i0|erfinv|logcumsumexp|norm \(nuc\)"
)
"""Linear algebra, FFTs and special functions, by the beginnings of names."""
_HEAD = """# Which operators of PyTorch run where?

The operators of PyTorch's own database, {count} with a result on a CPU, of {samples} samples each,
and their gradients. *Others* are all but linear algebra, FFTs and special functions.

| | results | gradients | results, others | gradients, others |
| --- | ---: | ---: | ---: | ---: |
"""


@dataclass(frozen=True)
class OperatorRow:
    """An operator: where its results and its gradients were computed, or None without gradients,
    and the operators that ran on the host.
    """

    name: str
    results: str | None
    gradients: str | None
    on_host: tuple[str, ...]

    @property
    def is_other(self) -> bool:
        """Whether it is of no special family."""
        return not _FAMILY.match(self.name)


def measured(record: CoverageRecord) -> list[OperatorRow]:
    """Run OpInfo on the device, in two processes."""
    # The import takes seconds, which readers of the page do not need.
    from torch.testing._internal.common_methods_invocations import op_db

    command = (sys.executable, str(ROOT / "launch.py"), "--sips", "1", *OPTIONS, str(PROGRAM))
    names = [
        f"{op.name} ({op.variant_test_name})" if op.variant_test_name else op.name for op in op_db
    ]
    programs = [
        CoverageProgram((*command, str(SAMPLES)), names[share::SHARES]) for share in range(SHARES)
    ]
    lines = record.lines("operators", programs)
    return sorted(rows_of("".join(lines.values())), key=lambda row: row.name)


def rows_of(output: str) -> Iterable[OperatorRow]:
    """The operators of what the program prints, but for those without a comparison."""
    for name, outcome, *parts in LINE.findall(output):
        if REFUSAL.match(outcome):
            continue
        results, gradients = (_kind_of(outcome, each) for each in parts)
        hosts = [each.rpartition("; host")[2].split() for each in parts]
        yield OperatorRow(name, results, gradients, tuple(sorted({*hosts[0], *hosts[1]})))


def _kind_of(outcome: str, part: str) -> str | None:
    ran = _RAN.fullmatch(part.strip())
    if ran is None:
        return None
    if outcome != "ok":
        is_difference = "Tensor-likes are not" in outcome or "AssertionError" in outcome
        return "other results" if is_difference else "errors"
    device, decomposed, host = ran.groups()
    if host:
        return "partly on the host" if int(device) else "on the host"
    return "decomposed" if decomposed else "by kernels and formulas"


def page(rows: Sequence[OperatorRow]) -> str:
    """The text of the page."""
    text = _HEAD.format(count=len(rows), samples=SAMPLES)
    others = [row for row in rows if row.is_other]
    columns = [
        Counter(getattr(row, part) for row in chosen)
        for chosen in (rows, others)
        for part in ("results", "gradients")
    ]
    totals = [sum(column[kind] for kind in _PLACES) for column in columns]
    for kind, meaning in KINDS.items():
        numbers = " | ".join(str(column[kind]) for column in columns)
        text += f"| {kind}: {meaning} | {numbers} |\n"
    wholly = [column["by kernels and formulas"] + column["decomposed"] for column in columns]
    shares = " | ".join(
        f"{100 * part / total:.1f} %" for part, total in zip(wholly, totals, strict=True)
    )
    text += f"| wholly on the device | {shares} |\n"
    return text + _listed(rows)


def _listed(rows: Sequence[OperatorRow]) -> str:
    """The others that reach the host, with the operators that run there."""
    text = "\nOthers that reach the host, in their results or gradients:\n\n"
    text += "| operator | results | gradients | on the host |\n| --- | --- | --- | --- |\n"
    for row in rows:
        if row.is_other and row.on_host:
            listed = ", ".join(f"`{each}`" for each in row.on_host)
            text += f"| {row.name} | {row.results or ''} | {row.gradients or ''} | {listed} |\n"
    return text
