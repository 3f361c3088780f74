"""The page of a run: losses and advice, hardware with loads, timeline, waits, roofline, path."""

from collections.abc import Sequence
from html import escape
from typing import Any

from kernbench.explain.advice.advise import advise
from kernbench.explain.advice.scope import RunSelection
from kernbench.explain.advice.source_text import SourceText
from kernbench.explain.check.findings import check_records
from kernbench.explain.check.report import counts_text, first_lines
from kernbench.explain.records import RecordedRun
from kernbench.explain.web.activity import PageActivity, engine_order
from kernbench.explain.web.advice_section import advice_section
from kernbench.explain.web.colours import HIGHLIGHT, KINDS
from kernbench.explain.web.comparison_section import comparison_section
from kernbench.explain.web.document import page_html
from kernbench.explain.web.fabric_geometry import FabricDrawing
from kernbench.explain.web.figures import span
from kernbench.explain.web.geometry import IO, M_CPU, PE, PORT, SLICE, SRAM, SipDrawing
from kernbench.explain.web.kernel_work import KernelWork, kernel_work
from kernbench.explain.web.loads import PageLoads
from kernbench.explain.web.path_data import MOST_PIECES, path_data
from kernbench.explain.web.run_figures import load_figure, roofline_figure, timeline_figure
from kernbench.explain.web.topology_page import LABEL_PITCHES, hardware_figures, machine_facts
from kernbench.explain.web.waits import link_waits, program_waits
from kernbench.explain.why.path import critical_path
from kernbench.explain.why.path_jitter import with_jitter
from kernbench.oracle.theory.topology_file import TopologyFile
from runtime.core.simtime import PS_PER_NS
from runtime.model.graph import ChipGraph

COLOURS = {
    "kernels": KINDS[PE],
    "compute": KINDS[SRAM],
    "memory": KINDS[SLICE],
    "communication": KINDS[PORT],
    "launch": KINDS[M_CPU],
    "waits": KINDS[IO],
    "path": HIGHLIGHT,
}


def run_page(records: RecordedRun, other: RecordedRun | None = None) -> str:
    """The HTML of a run, compared with another one if there is one.

    Raises `UsageError` for a comparison with a run that has failed.
    """
    topology = records.topology
    drawing = SipDrawing(ChipGraph(topology))
    works = kernel_work(records)
    total_ns = records.total_ps / PS_PER_NS
    interval = span(0, total_ns, bounds=(0, total_ns), name="interval")
    file = TopologyFile(topology.values())
    figures = hardware_figures(topology, drawing, loads=True) | {
        "loads": load_figure(total_ns, interval),
        "timeline": timeline_figure(interval),
        "roofline": roofline_figure(file, works),
    }
    data = _data(records, drawing, works)
    facts = [*_facts(records), *machine_facts(topology)]
    advice = advise(records, RunSelection())
    section = advice_section(advice, records.total_ps, SourceText(records))
    section = f"{_findings_section(records)}{section}"
    if other is not None:
        section = f"{comparison_section(records, other)}\n{section}"
    return page_html(_title(records), facts, figures, data, section)


def _title(records: RecordedRun) -> str:
    run = records.run
    given = " ".join(f"{key}={value}" for key, value in run.arguments.items())
    arguments = " ".join(filter(None, (given, *run.argv)))
    title = f"{run.bench} on {run.sips} SIP{'s' * (run.sips > 1)}"
    return f"{title}: {arguments}" if arguments else title


def _facts(records: RecordedRun) -> list[str]:
    run = records.run
    return [
        f"digest {run.digest[:16]}",
        f"{run.sim_time_ns:,.3f} ns simulated",
        "passed" if run.passed else "FAILED",
        f"config {run.config_hash[:8]}",
        f"kernbench {run.versions.get('kernbench', 'unknown')}",
    ]


def _data(records: RecordedRun, drawing: SipDrawing, works: Sequence[KernelWork]) -> dict[str, Any]:
    loads, activity = PageLoads(records), PageActivity(records)
    path = with_jitter(records, critical_path(records)).pieces
    engines = sorted({track.engine for track in activity.tracks}, key=engine_order)
    return {
        "run": True,
        "sips": records.run.sips,
        "label_mm": LABEL_PITCHES * drawing.pitch_mm,
        "total_ps": records.total_ps,
        "channels": records.topology.hbm.num_pcs,
        "loads": loads.columns(),
        "load_names": loads.names,
        "load_kinds": loads.kinds,
        "load_bin_ps": loads.bin_ps,
        "tracks": activity.counters(),
        "intervals": activity.intervals(),
        "names": list(activity.names),
        "engines": engines,
        "cells": activity.cells(),
        "cell_bin_ps": activity.bin_ps,
        "waits": program_waits(records),
        "link_waits": link_waits(records),
        "path": path_data(records, path),
        "ports": _ports(records),
        "kernels": [_kernel(work) for work in works],
        "colours": COLOURS,
        "notes": _notes(loads, activity, len(path)),
    }


def _ports(records: RecordedRun) -> list[tuple[int, str]]:
    """The SIP and the name of the port of each link between SIPs, in the order of the drawing."""
    if records.run.sips == 1:
        return []
    return [(link.sip, link.port) for link in FabricDrawing(records.topology).links]


def _kernel(work: KernelWork) -> list[object]:
    rate = f"{work.gflops:,.3f}" if work.flops else "-"
    intensity = f"{work.intensity:,.3f}" if work.flops and work.hbm_bytes else "-"
    time = f"{work.time_ps / work.programs / PS_PER_NS:,.3f}"
    counts = (len(work.pes), work.programs, work.flops, work.hbm_bytes)
    return [work.kernel, *(f"{count:,}" for count in counts), time, intensity, rate]


def _notes(loads: PageLoads, activity: PageActivity, pieces: int) -> list[str]:
    """Notes on the data which were merged so that the page stays small, and on the others."""
    recorded, kept = loads.recorded_bin_ps / PS_PER_NS, loads.bin_ps / PS_PER_NS
    notes = [
        f"Loads of links: {loads.recorded_rows:,} rows in bins of {recorded:,g} ns were recorded.",
        f"Here are {loads.rows.shape[1]:,} rows in bins of {kept:,g} ns, with the same sums.",
    ]
    if activity.joined_tracks:
        notes.append(
            f"Operations: {activity.operations:,} operations, kernels and waits. A track of a "
            f"component has at most {activity.limit:,} intervals, and {activity.joined_tracks:,} "
            f"of {len(activity.tracks):,} tracks have more: where their gaps are shortest, "
            "operations are joined to one bar, as high as its active share. Counters are of all "
            "of them."
        )
    else:
        notes.append(
            f"Operations: all {activity.operations:,} operations, kernels and waits are here."
        )
    notes.append(
        f"Rows of SIPs and engines: bins of {activity.bin_ps / PS_PER_NS:,g} ns; the height is the "
        "share of PEs of the row whose engine is active."
    )
    if pieces > MOST_PIECES:
        notes.append(
            f"Critical path: the {MOST_PIECES:,} longest of {pieces:,} pieces; those between them "
            "are joined."
        )
    return notes


def _findings_section(records: RecordedRun) -> str:
    """The reports of `check` as HTML: the numbers, a line for each of the first reports, and the
    command that prints all. Empty for a run without reports, and for one that did not finish, whose
    last rows are missing.
    """
    if records.run.error is not None:
        return ""
    findings = check_records(records)
    lines = first_lines(findings, records.name)
    if not lines:
        return ""
    text = "\n".join(f'<p class="note">{escape(each)}</p>' for each in lines)
    return f"<h2>{counts_text(findings)}</h2>\n{text}\n"
