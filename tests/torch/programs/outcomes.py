"""Lines of programs that compare cases: the name of a case, its outcome, and the operators that
count for it.
"""

import os
from collections import Counter
from collections.abc import Callable, Iterable


def print_outcomes(
    cases: Iterable[str],
    compare: Callable[[str], str],
    counted: Counter[str],
    text: Callable[[Counter[str]], str] = lambda names: " ".join(sorted(names)),
    *,
    separator: str = ",",
) -> None:
    """Print a line for each case, or for those that the variable CASES names.

    Args:
        cases: All names.
        compare: Returns `ok`, or what differs; an error is the outcome of its case.
        counted: Operators, which each case starts to count anew.
        text: The text of the operators that a case has counted.
        separator: Between the names in the variable.
    """
    given = os.environ.get("CASES", "")
    for case in given.split(separator) if given else cases:
        counted.clear()
        try:
            outcome = compare(case)
        except Exception as error:  # noqa: BLE001 - the outcome of the case
            outcome = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
        print(f"{case} | {outcome} | {text(counted)}", flush=True)
