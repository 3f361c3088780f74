"""`python -m tests.renew_transcripts [--nightly] [PAGE ...]`: pages show what commands print now.

It runs the commands as `tests/multiproc/test_transcripts.py` does. A line that its test accepts
stays; of a line that differs, the words which differ are replaced. So `…` stays, and so do
wall times and other values that may differ. The hash of the configuration becomes `…`. With
`--nightly` also the commands that take long. Look at the difference before you commit it.
"""

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from pathlib import Path
from re import findall, fullmatch
from tempfile import TemporaryDirectory

from tests.support.transcripts import (
    PAGES,
    ROOT,
    Block,
    Step,
    Transcript,
    blocks_of,
    copy_of_the_checkout,
    difference,
    in_order_of_ranks,
    output_of,
    pattern_of,
    without_configuration,
    without_end,
    without_machine,
)

GAP = "…"
_TRACEBACK = "Traceback (most recent call last):"
_ALONE = 1.0
"""The cost of a line or a word that only the page has, or only the output."""
_WORD_COST = 0.9
"""The highest cost of a word in place of another one: a gap beside them takes neither."""


def main(arguments: list[str]) -> int:
    """Renew the pages, or all of them; returns 1 if a command of them needs a person."""
    nightly = "--nightly" in arguments
    names = [each for each in arguments if each != "--nightly"]
    pages = [Path(name).resolve() for name in names] or PAGES
    problems = list[str]()
    with TemporaryDirectory(prefix="transcripts-") as folder:
        transcript = Transcript(copy_of_the_checkout(Path(folder)))
        for page in pages:
            problems += renew(page, transcript, nightly=nightly)
    for problem in problems:
        print(f"not renewed: {problem}")
    return 1 if problems else 0


def renew(page: Path, transcript: Transcript, *, nightly: bool) -> Iterator[str]:
    """Write the lines of `page` that have changed; yields what a person has to look at."""
    name = str(page.relative_to(ROOT)) if page.is_relative_to(ROOT) else page.name
    text = page.read_text(encoding="utf-8")
    lines = text.splitlines(keepends=True)
    # From the end, so that the numbers of the lines before stay right.
    for block in reversed(blocks_of(name, text)):
        renewed = dict[Step, tuple[str, ...]]()
        if not block.not_run and (nightly or not block.is_nightly):
            problem = _run(block, transcript, renewed)
            if problem:
                yield problem
        for step in reversed(block.steps):
            shown = tuple(map(without_configuration, renewed.get(step, step.shown)))
            if shown != step.shown:
                print(f"{name}:{step.at}: {step.command}")
                begin = step.at - 1
                lines[begin : begin + len(step.shown)] = [f"{line}\n" for line in shown]
    changed = "".join(lines)
    if changed != text:
        page.write_text(changed, encoding="utf-8")


def _run(block: Block, transcript: Transcript, renewed: dict[Step, tuple[str, ...]]) -> str:
    """Add what the steps of `block` print now to `renewed`; returns why it could not, or ''."""
    for step, ended in transcript.endings(block):
        printed = output_of(ended)
        differs = difference(step, printed)
        where = f"{block.page}:{step.at}: {step.command}"
        expected = any("error:" in line for line in step.shown)
        if _TRACEBACK in ended.stderr or (ended.returncode and not expected):
            if differs or not step.shown:
                return f"{where} fails: {(ended.stderr.strip().splitlines() or ['?'])[-1]}"
        elif differs and not step.shown:
            return f"{where}: {differs}"
        elif differs:
            renewed[step] = renewed_lines(step.shown, printed)
    return ""


def renewed_lines(shown: Sequence[str], printed: str) -> tuple[str, ...]:
    """The lines of a page after those that differ from `printed` have been replaced."""
    before = in_order_of_ranks(without_end(list(shown)))
    now = [without_configuration(line) for line in without_end(printed.splitlines())]
    pairs = aligned(before, in_order_of_ranks(now), _cost_of_lines)
    return tuple(_joined(pairs, _renewed_line))


def aligned(
    shown: Sequence[str], printed: Sequence[str], cost: Callable[[str, str], float]
) -> list[tuple[str | None, str | None]]:
    """Pairs of what was shown and what is printed in its place, at the least sum of costs.

    None where one side has nothing. A gap is paired with None and takes any number of what is
    printed, which is left out.
    """
    gaps = [each.strip() == GAP for each in shown]
    rows, columns = len(shown), len(printed)
    # The least cost of the rest, from each place on; the pairs are found from the costs.
    least = [[0.0] * (columns + 1) for _ in range(rows + 1)]
    costs = [
        [0.0 if gap else cost(each, other) for other in printed]
        for each, gap in zip(shown, gaps, strict=True)
    ]
    for row in range(rows, -1, -1):
        for column in range(columns, -1, -1):
            if (row, column) != (rows, columns):
                least[row][column] = min(
                    price for price, *_ in _ways(row, column, gaps, costs, least)
                )
    pairs = list[tuple[str | None, str | None]]()
    row = column = 0
    while (row, column) != (rows, columns):
        ways = _ways(row, column, gaps, costs, least)
        _, down, right, is_kept = min(ways, key=lambda way: way[0])
        if is_kept:
            before = shown[row] if down else None
            pairs.append((before, printed[column] if right else None))
        row, column = row + down, column + right
    return pairs


def _ways(
    row: int,
    column: int,
    gaps: Sequence[bool],
    costs: Sequence[Sequence[float]],
    least: Sequence[Sequence[float]],
) -> Iterator[tuple[float, int, int, bool]]:
    """(cost, rows on, columns on, whether the result has it) of each next step from a place."""
    has_row, has_column = row < len(gaps), column < len(least[0]) - 1
    if has_row and gaps[row]:
        yield least[row + 1][column], 1, 0, True
        if has_column:
            yield least[row][column + 1], 0, 1, False
        return
    if has_row and has_column:
        yield costs[row][column] + least[row + 1][column + 1], 1, 1, True
    if has_row:
        yield _ALONE + least[row + 1][column], 1, 0, False
    if has_column:
        yield _ALONE + least[row][column + 1], 0, 1, True


def _joined(
    pairs: Iterable[tuple[str | None, str | None]], renewed: Callable[[str, str], str]
) -> Iterator[str]:
    for before, now in pairs:
        if before is None or now is None:
            # A gap stays, and what is printed for the first time comes.
            yield now if before is None and now is not None else before or ""
        else:
            yield renewed(before, now)


def _cost_of_lines(shown: str, printed: str) -> float:
    if _accepts(shown, printed):
        return 0.0
    if shown.split()[:1] == printed.split()[:1] and shown.strip():
        # A line with the same label, and any text behind it.
        return 0.5 * (1 - _likeness(shown, printed)) + 0.01
    return 2 * (1 - _likeness(shown, printed)) + 0.01


def _cost_of_words(shown: str, printed: str) -> float:
    return min(_WORD_COST, 2 * (1 - _likeness(shown, printed)))


def _likeness(one: str, other: str) -> float:
    return SequenceMatcher(None, one, other, autojunk=False).ratio()


def _accepts(shown: str, printed: str) -> bool:
    """Whether the test of a page accepts `printed` for the line `shown`."""
    return fullmatch(pattern_of(without_machine(shown)), without_machine(printed)) is not None


def _renewed_line(shown: str, printed: str) -> str:
    if _accepts(shown, printed):
        return shown
    if GAP not in shown:
        return printed
    pairs = aligned(_words(shown), _words(printed), _cost_of_words)
    return "".join(_joined(pairs, lambda before, now: now))


def _words(line: str) -> list[str]:
    return findall(r"\s+|…|/|[^\s…/]+", line)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
