"""The order of losses: kinds before sizes, and small ones behind all others."""

from kernbench.explain.advice.finding import Advice, Finding, LossKind, ranked
from kernbench.explain.why.what_if import NumberChange


def loss(rule: str, kind: LossKind, cost_ps: int) -> Finding:
    return Finding(rule=rule, kind=kind, cost_ps=cost_ps, title="", evidence="")


def order(*findings: Finding) -> list[str]:
    return [each.rule for each in ranked(findings, 10_000)]


def test_a_defect_comes_before_a_larger_redesign():
    redesign, defect = loss("r", LossKind.REDESIGN, 5000), loss("d", LossKind.DEFECT, 1000)
    assert order(redesign, defect) == ["d", "r"]


def test_a_number_of_the_machine_comes_before_defects():
    machine, defect = loss("m", LossKind.MACHINE, 900), loss("d", LossKind.DEFECT, 1000)
    assert order(defect, machine) == ["m", "d"]


def test_a_loss_below_a_fiftieth_is_behind_all_larger_ones():
    small, large = loss("s", LossKind.DEFECT, 199), loss("l", LossKind.REDESIGN, 200)
    assert order(small, large) == ["l", "s"]


def test_a_loss_below_a_two_hundredth_is_not_shown():
    assert order(loss("a", LossKind.DEFECT, 49), loss("b", LossKind.DEFECT, 50)) == ["b"]


def test_a_slower_service_is_a_symptom_of_a_placement_that_costs_more():
    service, placement = loss("service", LossKind.DEFECT, 900), ("hot slice", LossKind.DEFECT)
    assert order(service, loss(*placement, 1000)) == ["hot slice"]
    assert order(service, loss(*placement, 800)) == ["service", "hot slice"]


def test_a_change_of_a_number_is_one_of_the_machine():
    change = NumberChange("ucie.bw_gbs", 16, 128)
    assert Advice(text="", saves_ps=1, change=change).of_machine
    assert Advice(text="", saves_ps=1, is_machine=True).of_machine
    assert not Advice(text="", saves_ps=1).of_machine
