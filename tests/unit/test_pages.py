"""Every relative link of a page leads to a file, and every anchor to a heading of it."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
LINK = re.compile(r"\]\(([^)]+)\)")
FENCED_BLOCK = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def prose(text: str) -> str:
    """A page without its fenced blocks and code spans: brackets in code are no links."""
    return re.sub(r"`[^`\n]*`", "``", FENCED_BLOCK.sub("", text))


def anchors(text: str) -> set[str]:
    """The anchors that GitHub makes of the headings of a page."""
    headings = HEADING.findall(FENCED_BLOCK.sub("", text))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken_links(page: Path) -> list[str]:
    """The relative links of a page that lead nowhere."""
    broken: list[str] = []
    for link in LINK.findall(prose(page.read_text(encoding="utf-8"))):
        if re.match(r"[a-z]+:", link):
            continue
        # The site reads links of one line.
        if link != link.strip():
            broken.append(link)
            continue
        file, _, anchor = link.partition("#")
        target = (page.parent / file) if file else page
        if not target.exists() or (anchor and anchor not in anchors(target.read_text("utf-8"))):
            broken.append(link)
    return broken


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_links_of_a_page_lead_to_a_file_and_a_heading(page: Path):
    assert broken_links(page) == []


def test_a_missing_file_and_a_missing_heading_are_seen(tmp_path: Path):
    page = tmp_path / "page.md"
    page.write_text(
        "# A `b`\n[1](#a-b) [2](#c) [3](none.md) [5](\npage.md)\n```\n[4](none)\n```\n", "utf-8"
    )
    assert broken_links(page) == ["#c", "none.md", "\npage.md"]
