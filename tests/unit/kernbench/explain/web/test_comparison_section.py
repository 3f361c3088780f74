"""Two runs on one page: kernels by name, those of one run alone included."""

import re

from kernbench.explain.web.comparison_section import comparison_section
from tests.support.hand_made_runs import a_slot_and_its_credit, one_kernel
from tests.support.run_tables import command, program, step, tables
from tests.support.simulated_runs import of_tables


def test_kernels_are_aligned_by_their_names():
    pe = {"cube": 0, "pe": 0, "thread": "kernels", "command": 0, "kernel": "<other>"}
    other = tables(
        programs=[program(1, 200, 500, **pe), program(0, 0, 900, thread="rank")],
        steps=[step(1, "load", 200, 500, step=1), step(0, "synchronize", 0, 900)],
        commands=[command(0, "KernelLaunchMsg", 0, 100, 900)],
    )
    html = comparison_section(of_tables([one_kernel()], 1000), of_tables([other], 900))
    assert "A 1.000 ns, B 0.900 ns: -0.100 ns, 0.900 times as long" in html
    rows = re.findall(r"<tr>(?:<td class=\"number\">([^<]*)</td>){3}<td><b>([^<]*)</b>", html)
    assert rows == [("-0.700", "k"), ("+0.300", "&lt;other&gt;")]


def test_a_run_compared_with_itself_has_no_changes():
    one, same = (of_tables(a_slot_and_its_credit(), 1000) for _ in range(2))
    html = comparison_section(one, same)
    assert "Launches of each kernel" in html
    assert "Statements on the critical path" not in html
