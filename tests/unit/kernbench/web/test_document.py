"""A page is one file that loads nothing, with the same bytes for the same contents."""

import re

import pytest

from kernbench.web.topology_page import topology_page
from tests.support.topologies import small

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
