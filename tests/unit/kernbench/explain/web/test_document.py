"""A page is one file that loads nothing, with the same bytes for the same contents."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from kernbench.explain.records import open_run
from kernbench.explain.web.run_page import run_page
from kernbench.explain.web.topology_page import topology_page
from tests.support.topologies import small
from tests.support.web_runs import write_page_run

pytestmark = pytest.mark.slow


def test_the_same_topology_gives_the_same_page() -> None:
    # The second page is made of other models of the same process, whose own ids go on counting.
    assert topology_page(small(), "a.yaml") == topology_page(small(), "a.yaml")


def test_a_page_refers_to_no_other_file() -> None:
    html = topology_page(small(), "a.yaml")
    markup = re.sub(r"<script.*?</script>", "", html, flags=re.DOTALL)
    assert not re.search(r"\b(src|href)=|@import|url\(", markup)
    assert "default-src 'none'" in markup


def test_a_title_with_markup_stays_text() -> None:
    html = topology_page(small(), "</title><script>x</script>.yaml")
    assert "<script>x" not in html
    assert "&lt;/title&gt;&lt;script&gt;x" in html


@pytest.mark.parametrize(
    "name", ["<!--<script>", "</script>", "]]>", "&lt;", "a\u2028b\u2029c", "a < b > c"]
)
def test_the_data_of_a_page_is_text_for_html(name: str, tmp_path: Path) -> None:
    html = run_page(open_run(write_page_run(tmp_path / "run", kernel=name)))
    embedded = re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', html, re.DOTALL)
    assert len(embedded) == 2
    # Without these characters a browser takes the element for what it is, up to its end.
    assert not set("".join(embedded)) & set("<>&\u2028\u2029")
    assert name in strings([json.loads(each) for each in embedded])


def strings(value: Any) -> set[str]:
    """All strings of a JSON value."""
    if isinstance(value, dict):
        return strings([*value, *value.values()])
    if isinstance(value, list):
        return {text for each in value for text in strings(each)}
    return {value} if isinstance(value, str) else set()
