"""The first section of a page: kernels, heat of PEs, losses, advice and source."""

import re

from kernbench.explain.advice.advise import advise
from kernbench.explain.advice.scope import RunSelection
from kernbench.explain.advice.source_text import SourceText
from kernbench.explain.web.advice_section import advice_section
from tests.support.bottlenecks import CASES
from tests.support.hand_made_runs import one_kernel
from tests.support.run_tables import program, tables
from tests.support.simulated_runs import of_tables, recorded

DOUBLE_WORK = CASES[0]


def test_one_slow_pe_is_the_dark_cell_of_the_heat_row():
    records = recorded(lambda rank: DOUBLE_WORK.program(rank, True), data=False)
    advice = advise(records, RunSelection())
    html = advice_section(advice, records.total_ps, SourceText(records))
    heat = [float(each) for each in re.findall(r'<i[^>]*style="--heat:([\d.]+)"', html)]
    assert heat == [0, 0, 0, 0, 0, 1, 0, 0]
    assert "slowest sip0.cube0.pe5" in html
    assert html.index("<h2>Losses</h2>") < html.index("<h2>Change this</h2>")
    # The statement with its time, between the lines around it.
    assert re.search(r"3,977\.008</td>.*?tl\.store\(out \+ first, tl\.exp", html)


def test_pes_with_equal_times_have_no_heat_and_text_is_escaped():
    records = of_tables([one_kernel()], 1000)
    html = advice_section(advise(records, RunSelection()), 1000, SourceText(records))
    assert re.findall(r"--heat:[\d.]+", html) == ["--heat:0.00"]
    named = of_tables([tables(programs=[program(0, 0, 70, thread="rank")])], 70)
    html = advice_section(advise(named, RunSelection(time_ps=(0, 70))), 70, SourceText(named))
    assert "No loss of at least 0.5 %." in html
    assert "<script" not in html
