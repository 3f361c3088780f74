"""Rules which find losses, each in a module of its own: a function from evidence to findings."""

from kernbench.explain.advice.evidence import Evidence
from kernbench.explain.advice.finding import Finding
from kernbench.explain.advice.rules.algorithms import algorithm_findings
from kernbench.explain.advice.rules.balance import balance_findings
from kernbench.explain.advice.rules.barriers import barrier_findings
from kernbench.explain.advice.rules.blocks import block_findings
from kernbench.explain.advice.rules.channels import channel_findings
from kernbench.explain.advice.rules.conversions import conversion_findings
from kernbench.explain.advice.rules.gaps import gap_findings
from kernbench.explain.advice.rules.machine import machine_findings
from kernbench.explain.advice.rules.overlap import overlap_findings
from kernbench.explain.advice.rules.placement import placement_findings

RULES = (
    machine_findings,
    balance_findings,
    barrier_findings,
    placement_findings,
    channel_findings,
    conversion_findings,
    algorithm_findings,
    gap_findings,
    block_findings,
    overlap_findings,
)


def findings(evidence: Evidence) -> list[Finding]:
    """The losses that all rules find."""
    return [each for rule in RULES for each in rule(evidence)]
