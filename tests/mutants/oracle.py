"""Compares chip and oracle in copies of the checkout, each with one mutant of the chip.

`python -m tests.mutants.oracle [NAME ...]` takes the mutants of the code that the oracle covers,
those for the checks and a few more. Each copy runs as `python -m tests.mutants.oracle --compare`.
"""

import os
import subprocess
import sys
from random import Random

import click

from tests.mutants import ALL
from tests.mutants.mutant import Mutant
from tests.mutants.runner import ROOT, copy_of_checkout
from tests.support.oracle_cases import DRAWS, by_the_chip, by_the_oracle, kernel_times

COVERED = (
    *(f"runtime/model/{name}.py" for name in ("graph", "routing", "cube_plan", "router_grid")),
    "runtime/core/simtime.py",
    *(f"sip_node/chip/fabric/{name}.py" for name in ("fabric", "hops", "server", "egress_stream")),
    *(f"sip_node/chip/memory/{name}.py" for name in ("hbm", "memory_packets", "storage")),
    "sip_node/chip/memory/transaction_queue.py",
    "sip_node/kernel/exact.py",
    *(f"sip_node/chip/pe/{name}.py" for name in ("dma", "read_window")),
    "sip_node/programs/kernel_issue.py",
    "sip_node/kernel/calendar.py",
)
MORE = (
    Mutant(
        name="oracle-newest-call-first",
        file="sip_node/kernel/calendar.py",
        old="next(self._eid), (function, args)",
        new="-next(self._eid), (function, args)",
        breaks="Of what happens in the same picosecond, that with the earlier cause comes first.",
        noticed_by="",
    ),
    Mutant(
        name="oracle-a-picosecond-more",
        file="sip_node/kernel/exact.py",
        old="    ratio = -(-number * numerator // denominator)\n",
        new="    ratio = -(-number * numerator // denominator) + 1\n",
        breaks="A link serialises bytes at its bandwidth, rounded up to the picosecond.",
        noticed_by="",
    ),
)
"""Mutants which no check need notice."""
CASES = 12


def first_difference() -> str:
    """The first case in which chip and oracle differ; empty if there is none."""
    for seed in range(CASES):
        for draw in DRAWS:
            case = draw(Random(seed))
            if by_the_chip(case) != by_the_oracle(case):
                return f"{draw.__name__} {seed}"
        by_chip, by_oracle = kernel_times(seed)
        if by_chip != by_oracle:
            return f"kernels {seed}"
    return ""


def outcome_of(mutant: Mutant) -> str:
    """`noticed` with the case, `crashed`, or `survived`."""
    with copy_of_checkout() as root:
        mutant.apply(root)
        environment = {
            **os.environ,
            # The packages of the copy, the tests of the checkout.
            "PYTHONPATH": f"{root}{os.pathsep}{ROOT}",
            "PYTHONDONTWRITEBYTECODE": "1",
            "KERNBENCH_CORE": "python",
        }
        command = [sys.executable, "-m", "tests.mutants.oracle", "--compare"]
        run = subprocess.run(
            command, check=False, cwd=root, env=environment, capture_output=True, text=True
        )
    return run.stdout.strip() if not run.returncode else "crashed"


@click.command()
@click.argument("names", nargs=-1)
@click.option("--compare", is_flag=True, help="Compare here, without a mutant.")
def main(names: tuple[str, ...], *, compare: bool) -> None:
    """Test the mutants with a NAME in theirs; by default all."""
    if compare:
        case = first_difference()
        click.echo(f"noticed   {case}" if case else "survived")
        return
    covered = [each for each in ALL + MORE if each.file in COVERED]
    chosen = [each for each in covered if not names or any(name in each.name for name in names)]
    noticed = 0
    for mutant in chosen:
        outcome = outcome_of(mutant)
        noticed += outcome != "survived"
        click.echo(f"{mutant.name:<40} {outcome}")
    click.echo(f"{noticed} of {len(chosen)} mutants noticed")


if __name__ == "__main__":
    main()
