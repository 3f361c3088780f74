"""Writes the rows of `probe` as CSV and JSON. The name of a field ends with its unit."""

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from kernbench.measure.transfers.cases import NAMES
from kernbench.measure.transfers.measure import ProbeRow
from runtime.core.output import write_output

FIELDS: tuple[str, ...] = (
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
"""`exact`: the closed form is the time of the transfer, otherwise a lower bound.

`utilisation` is a share of 1."""

FieldValue = str | int | float | bool


def record(row: ProbeRow) -> dict[str, FieldValue]:
    """One row; the keys are `FIELDS`, in that order."""
    case, form = row.transfer.case, row.form
    return {
        "case": case.name,
        "group": NAMES[case.name],
        "operation": row.transfer.direction,
        "memory": case.memory,
        "nbytes": row.transfer.nbytes,
        "overhead_ps": form.overhead_ps,
        "wire_ps": form.wire_ps,
        "drain_ps": form.drain_ps,
        "closed_form_ps": form.total_ps,
        "exact": form.exact,
        "measured_ps": row.measured_ps,
        "agrees": row.agrees,
        "effective_gbs": round(row.gbs, 6),
        "bottleneck": form.bottleneck.name,
        "bottleneck_kind": form.bottleneck.label,
        "bottleneck_gbs": float(form.bottleneck.bw_gbs),
        "utilisation": round(row.utilisation, 6),
    }


def write_csv(path: Path, rows: Iterable[ProbeRow]) -> None:
    """One line per row. Raises `OutputError`."""
    text = io.StringIO()
    writer = csv.DictWriter(text, FIELDS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(record(row) for row in rows)
    write_output(path, text.getvalue().encode())


def write_json(
    path: Path, source: str, sips: int, rows: Sequence[ProbeRow], left_out: Mapping[str, str]
) -> None:
    """Topology file, number of SIPs, rows with all their hops, cases left out and the reasons.

    Raises `OutputError`.
    """
    content = {
        "topology": source,
        "sips": sips,
        "rows": [record(row) | {"legs": _legs(row)} for row in rows],
        "left_out": dict(left_out),
    }
    write_output(path, (json.dumps(content, indent=1) + "\n").encode())


def _legs(row: ProbeRow) -> list[dict[str, object]]:
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
                for hop in leg.hops
            ],
        }
        for leg in row.form.legs
    ]
