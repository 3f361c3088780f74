"""The lines that a kernel prints: reported with the time and the PE, in no simulated time."""

from runtime.core.program_grid import GridPoint, program_text
from runtime.wire.reports import DevicePrint
from sip_node.chip.pe.pe import Pe


def report_line(pe: Pe, kernel: str, program: GridPoint | None, text: str) -> None:
    """Report a line of `kernel`, with a grid of its `program`, as of now."""
    at, log = pe.coordinates, pe.chip.log
    if log.printed is not None:
        line = DevicePrint(
            time_ps=pe.chip.engine.now_ps,
            sip=at.sip,
            cube=at.cube,
            pe=at.pe,
            kernel=f"kernel {kernel!r}{program_text(program)}",
            text=text,
        )
        log.printed(line)
