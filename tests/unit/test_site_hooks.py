"""The site has a page for each target of a link, and every page stands in its navigation."""

import re

import pytest

from site_hooks import ROOT, rewritten, shown, slug, targets, uri_of


@pytest.mark.parametrize(
    ("path", "uri"),
    [
        ("README.md", "index.md"),
        ("SECURITY.md", "SECURITY.md"),
        ("docs/model.md", "model.md"),
        ("docs/adr", "adr/index.md"),
        ("docs/figures/sip.png", "figures/sip.png"),
        ("examples/scale.py", "source/examples/scale.py.md"),
        ("examples/kernels", "source/examples/kernels/index.md"),
    ],
)
def test_a_file_of_the_repository_has_a_page(path: str, uri: str):
    assert uri_of(path) == uri


def test_links_between_files_are_links_between_pages():
    text = "[a](model.md#x) [b](../README.md) [c](../examples/scale.py) [d](https://x.y) [e](#f)"
    assert rewritten("docs/kernels.md", text) == (
        "[a](model.md#x) [b](index.md) [c](source/examples/scale.py.md) [d](https://x.y) [e](#f)"
    )
    assert rewritten("README.md", "![s](docs/figures/sip.png)") == "![s](figures/sip.png)"
    assert rewritten("docs/internals/speed.md", "[r](../runs.md)") == "[r](../runs.md)"


def test_brackets_in_code_are_no_links():
    text = "`x[0](y)`\n```\n[a](b.md)\n```\n"
    assert rewritten("docs/kernels.md", text) == text
    assert targets("docs/kernels.md", text) == []


def test_a_folder_shows_links_to_its_files_and_a_source_its_text():
    assert "- [0001-" in shown("docs/adr")
    assert shown("launch.py").startswith("# launch.py\n\n````python\n")


def test_headings_have_the_anchors_of_the_repository():
    assert slug("d. A link as an M/D/1 queue", "-") == "d-a-link-as-an-md1-queue"


def test_every_page_stands_in_the_navigation():
    navigation = set(re.findall(r"[\w/-]+\.md", (ROOT / "mkdocs.yml").read_text("utf-8")))
    folders = (ROOT / "docs", ROOT / "docs" / "internals")
    pages = {uri_of(str(page.relative_to(ROOT))) for each in folders for page in each.glob("*.md")}
    assert pages - navigation == set()
