"""Deletes reads of keys in one core; the comparison of both cores must notice every one.

`python -m tests.mutants.keys` edits copies of the checkout (`tests.mutants.key_reads`). The
reference runs in the copy, the compiled core in the checkout, on the runs with which
`tests/property/test_every_key_on_both_cores.py` tests the key.
"""

import os
import subprocess
import sys
from pathlib import Path

import click

from tests.mutants.key_reads import READS
from tests.mutants.mutant import Mutant
from tests.mutants.runner import ROOT, copy_of_checkout


def reports(root: Path, core: str, key: str) -> list[str]:
    """The runs of a key in the checkout `root` on a core; no line for a process that fails."""
    command = [sys.executable, "-m", "tests.support.changed_keys", "0", "--only", key]
    environment = {
        **os.environ,
        # The packages of the copy, the tests of the checkout.
        "PYTHONPATH": f"{root}{os.pathsep}{ROOT}",
        "PYTHONDONTWRITEBYTECODE": "1",
        "KERNBENCH_CORE": core,
    }
    run = subprocess.run(
        command, check=False, cwd=root, env=environment, capture_output=True, text=True
    )
    return run.stdout.splitlines()


def outcome_of(mutant: Mutant) -> str:
    """`noticed`, `survived`, `crashed`, or why the comparison without the edit shows nothing."""
    key = mutant.noticed_by
    expected = reports(ROOT, "compiled", key)
    with copy_of_checkout() as root:
        if reports(root, "python", key) != expected or len(expected) != 2:
            return "both cores differ without the edit"
        mutant.apply(root)
        found = reports(root, "python", key)
        if len(found) != len(expected):
            return "crashed"
        return "survived" if found == expected else "noticed"


@click.command()
@click.argument("names", nargs=-1)
def main(names: tuple[str, ...]) -> None:
    """Test the deleted reads of NAMES, parts of key paths; by default all."""
    chosen = [each for each in READS if not names or any(name in each.name for name in names)]
    noticed = 0
    for mutant in chosen:
        outcome = outcome_of(mutant)
        noticed += outcome == "noticed"
        click.echo(f"{outcome:<9} {mutant.name:<40} {mutant.file}")
    click.echo(f"{noticed} of {len(chosen)} deleted reads noticed")
    raise SystemExit(noticed < len(chosen))


if __name__ == "__main__":
    main()
