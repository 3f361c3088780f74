"""Builds the documentation site from the pages as they lie in the repository.

`mkdocs build` calls the functions `on_…` (`make site`). The pages link to each other and to source
files by relative paths, as a reader of the repository follows them. The site has a page for each
target: README.md is the start, a source file is shown as text, a folder as the list of its files.
So every link leads to a page of the site, nothing refers to a host, and `--strict` checks all.
"""

import re
from os.path import normpath, relpath
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent
START = "README.md"
PAGES = "docs"
SOURCE = "source"
LINK = re.compile(
    r"(?P<fence>^ *```.*?^ *```)|(?P<code>`[^`\n]*`)|\]\((?P<link>[^)\s]+)\)",
    re.DOTALL | re.MULTILINE,
)
SCHEME = re.compile(r"[a-z]+:")
LANGUAGES = {".py": "python", ".yaml": "yaml", ".toml": "toml", ".pxd": "cython", ".pyx": "cython"}


def slug(heading: str, separator: str) -> str:
    """The anchor of a heading, as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", separator)


def uri_of(path: str) -> str:
    """The page of the site for a file or a folder at `path` in the repository."""
    if path == START:
        return "index.md"
    inside = path.removeprefix(f"{PAGES}/") if path.startswith(f"{PAGES}/") else ""
    if (ROOT / path).is_dir():
        return f"{inside or f'{SOURCE}/{path}'}/index.md"
    if inside:
        return inside
    return path if path.endswith(".md") and "/" not in path else f"{SOURCE}/{path}.md"


def target_of(page: str, link: str) -> str:
    """The path in the repository to which a link of the page at path `page` leads; may be empty."""
    path = link.partition("#")[0]
    if SCHEME.match(link) or not path:
        return ""
    return normpath(str(Path(page).parent / path))


def targets(page: str, text: str) -> list[str]:
    """The paths in the repository to which the links of a page lead."""
    links = (match["link"] for match in LINK.finditer(text))
    return [target for link in links if link and (target := target_of(page, link))]


def rewritten(page: str, text: str) -> str:
    """The text of a page of the repository with links between pages of the site."""
    folder = str(Path(uri_of(page)).parent)

    def replaced(match: re.Match[str]) -> str:
        target = target_of(page, match["link"]) if match["link"] else ""
        if not target:
            return match[0]
        anchor = "".join(match["link"].partition("#")[1:])
        return f"]({relpath(uri_of(target), folder)}{anchor})"

    return LINK.sub(replaced, text)


def files_of(folder: str) -> list[str]:
    """The paths of the files in a folder of the repository; no cache, package file or library."""
    names = sorted(each.name for each in (ROOT / folder).iterdir() if each.is_file())
    return [
        f"{folder}/{name}" for name in names if name[0] not in "_." and not name.endswith(".so")
    ]


def shown(path: str) -> str:
    """The page of a source file, or of a folder with links to its files."""
    if (ROOT / path).is_dir():
        folder = str(Path(uri_of(path)).parent)
        links = [
            f"- [{Path(each).name}]({relpath(uri_of(each), folder)})" for each in files_of(path)
        ]
        return "\n".join([f"# {path}", "", *links, ""])
    fence = "`" * 4
    text = (ROOT / path).read_text("utf-8").rstrip()
    return f"# {path}\n\n{fence}{LANGUAGES.get(Path(path).suffix, 'text')}\n{text}\n{fence}\n"


def on_config(config: "MkDocsConfig") -> "MkDocsConfig":
    """Give headings the anchors that they have in the repository."""
    config["mdx_configs"].setdefault("toc", {})["slugify"] = slug
    return config


def on_files(files: "Files", config: "MkDocsConfig") -> "Files":
    """Add the pages that are not in the folder of pages: those at the root, and sources."""
    from mkdocs.structure.files import File

    known = {file.src_uri for file in files}
    waiting = [
        START,
        *(f"{PAGES}/{file.src_uri}" for file in files if file.is_documentation_page()),
    ]
    while waiting:
        path = waiting.pop()
        uri, text = uri_of(path), ""
        is_page = (ROOT / path).is_file() and path.endswith(".md")
        if is_page:
            text = (ROOT / path).read_text("utf-8")
        if uri not in known:
            content = rewritten(path, text) if is_page else shown(path)
            files.append(File.generated(config, uri, content=content))
            known.add(uri)
        linked = files_of(path) if (ROOT / path).is_dir() else targets(path, text)
        waiting += [each for each in linked if (ROOT / each).exists() and uri_of(each) not in known]
    return files


def on_page_markdown(markdown: str, *, page: "Page", **_: object) -> str:
    """Rewrite the links of a page in the folder of pages; generated ones have theirs already."""
    if page.file.generated_by:
        return markdown
    return rewritten(f"{PAGES}/{page.file.src_uri}", markdown)
