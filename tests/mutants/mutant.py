"""A mutant: one small edit of the timing code which a check or a test of records must notice.

Method: mutation testing (DeMillo, Lipton & Sayward, Hints on test data selection, 1978). A mutant
that no check notices is either equivalent to the original or names a check that is missing.
"""

from dataclasses import dataclass
from pathlib import Path

from runtime.core.errors import UsageError

TESTS = "tests/"
"""The folder of all tests, with which the name of a test begins and no id of a check does."""


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """One edit: `new` instead of `old`, which occurs exactly once in `file`, a path below the root.

    `breaks` states in one sentence which rule of the model the edit breaks. `noticed_by` is the
    prefix of the ids of the checks that are expected to notice it; they run first. Of the tables of
    records, checks read the waits of operations: an edit of what else only they report is noticed
    by a test, and `noticed_by` is the file of that test, or the test as pytest names it. `survives`
    is the reason why nothing notices it, for a mutant that is known to survive: it counts as one.
    `with_core` is for files that are not compiled, and of no use without the core in C.
    """

    name: str
    file: str
    old: str
    new: str
    breaks: str
    noticed_by: str
    survives: str | None = None
    with_core: bool = False

    @property
    def is_noticed_by_test(self) -> bool:
        """Whether a test is expected to notice it, and not a check."""
        return self.noticed_by.startswith(TESTS)

    @property
    def expected(self) -> str:
        """Test that is expected to notice the mutant, as lists show it."""
        return self.noticed_by if self.is_noticed_by_test else f"{self.noticed_by}*"

    def edited(self, root: Path) -> str:
        """The text of the file below `root` with the edit."""
        text = (root / self.file).read_text(encoding="utf-8")
        count = text.count(self.old)
        if count != 1:
            raise UsageError(
                f"mutant {self.name}: its `old` occurs {count} times in {self.file}, not once"
            )
        return text.replace(self.old, self.new)

    def apply(self, root: Path) -> None:
        """Edit the file below `root`."""
        (root / self.file).write_text(self.edited(root), encoding="utf-8")
