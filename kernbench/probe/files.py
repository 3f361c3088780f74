"""The rows of `probe` as CSV and JSON. A field is a number in the unit that its name ends with."""

import csv
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from kernbench.probe.cases import NAMES
from kernbench.probe.measure import Row
from runtime.core.errors import UsageError

FIELDS = (
    "case",
    "group",
    "operation",
    "memory",
    "nbytes",
    "overhead_ps",
    "wire_ps",
    "drain_ps",
    "closed_form_ps",
    "exact",
    "measured_ps",
    "agrees",
    "effective_gbs",
    "bottleneck",
    "bottleneck_kind",
    "bottleneck_gbs",
    "utilisation",
)
"""`exact`: the closed form is what a transfer takes, else a lower bound. `utilisation` is a share of 1."""

Value = str | int | float | bool


def record(row: Row) -> dict[str, Value]:
    """One row, its fields in the order of `FIELDS`."""
    case, form = row.transfer.case, row.form
    values: tuple[Value, ...] = (
        case.name,
        NAMES[case.name],
        row.transfer.operation,
        case.target,
        row.transfer.nbytes,
        form.overhead_ps,
        form.wire_ps,
        form.drain_ps,
        form.total_ps,
        form.exact,
        row.measured_ps,
        row.agrees,
        round(row.gbs, 6),
        form.bottleneck.name,
        form.bottleneck.label,
        float(form.bottleneck.bw_gbs),
        round(row.utilisation, 6),
    )
    return dict(zip(FIELDS, values, strict=True))


def write_csv(path: Path, rows: Iterable[Row]) -> None:
    """A line for each row; raises `UsageError` where the file cannot be written."""
    try:
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(FIELDS)
            writer.writerows(record(row).values() for row in rows)
    except OSError as error:
        raise UsageError(f"probe: {path} cannot be written: {error.strerror}") from error


def write_json(
    path: Path, source: str, sips: int, rows: Sequence[Row], left_out: Mapping[str, str]
) -> None:
    """The topology file and its SIPs, the rows with the hops of every leg, and the cases left out with the reason."""
    content = {
        "topology": source,
        "sips": sips,
        "rows": [record(row) | {"legs": _legs(row)} for row in rows],
        "left_out": dict(left_out),
    }
    try:
        path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise UsageError(f"probe: {path} cannot be written: {error.strerror}") from error


def _legs(row: Row) -> list[dict[str, object]]:
    return [
        {
            "leg": leg.name,
            "nbytes": leg.nbytes,
            "drain_ps": leg.drain_ps,
            "bottleneck": leg.bottleneck.name,
            "hops": [
                {
                    "into": hop.node,
                    "overhead_ps": hop.overhead_ps,
                    "wire_ps": hop.wire_ps,
                    "link_gbs": float(hop.link.bw_gbs) if hop.link else None,
                }
                for hop in leg.way
            ],
        }
        for leg in row.form.legs
    ]
