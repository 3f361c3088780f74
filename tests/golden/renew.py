"""`python -m tests.golden.renew [NAME ...]` stores today's digests and prints those that changed.

A stored output changes only with a reason, and the commit explains it (docs/internals/testing.md).
"""

import json
import sys
from dataclasses import asdict
from pathlib import Path

from tests.golden.cases import CASES, Golden

FILE = Path(__file__).parent / "digests.json"


def stored() -> dict[str, Golden]:
    """The digests and times of the file, by name of the run."""
    content = json.loads(FILE.read_text(encoding="utf-8"))
    return {name: Golden(**golden) for name, golden in content.items()}


def main(names: list[str]) -> None:
    """Run the cases with these names, or all of them; the values of the other cases stay."""
    before = stored() if FILE.exists() else {}
    renewed = {name: CASES[name].run() for name in names or CASES}
    for name, golden in renewed.items():
        if golden != before.get(name):
            print(f"{name}: {before.get(name)} -> {golden}")
    now = before | renewed
    content = {name: asdict(now[name]) for name in CASES if name in now}
    FILE.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
