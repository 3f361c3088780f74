"""Puts figures, data, styles and scripts into one HTML file that loads nothing else.

The bytes depend on the contents alone: the ids of Bokeh, which count all models of the process, are
numbered anew in the order in which they appear.
"""

# Bokeh leaves the types of its documents open.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from string import Template
from typing import Any, cast

import msgspec
from bokeh.core.json_encoder import serialize_json
from bokeh.document import Document
from bokeh.resources import Resources

SCRIPTS = ("themes", "tables", "selection", "loads", "timeline", "details", "path", "start")
"""The files of the page's script, in their order."""
DOCUMENT = "kernbench"
"""Name of the only document of Bokeh in a page."""


def page_html(
    title: str,
    facts: Sequence[str],
    figures: Mapping[str, Any],
    data: object,
    advice: str = "",
) -> str:
    """The page: a title, facts below it, the section `advice` as HTML, each figure in the element
    of its key, and `data` for its script.
    """
    parts = files("kernbench.explain.web") / "page"
    template = Template((parts / "page.html").read_text(encoding="utf-8"))
    # Without a script in the figures, the page needs neither `eval` nor the network.
    resources = Resources(mode="inline", components=["bokeh"], log_level="warn")
    return template.substitute(
        title=escape(title),
        facts="".join(f"<li>{escape(fact)}</li>" for fact in facts),
        advice=advice,
        style=(parts / "page.css").read_text(encoding="utf-8"),
        bokeh="\n".join(resources.js_raw).replace("</script", "<\\/script"),
        figures=_script_text(serialize_json(_documents(figures))),
        data=_script_text(msgspec.json.encode(data).decode()),
        script="\n".join((parts / f"{name}.js").read_text(encoding="utf-8") for name in SCRIPTS),
    )


def html_table(title: str, headings: Sequence[str], rows: Sequence[str]) -> str:
    """A table with its title; the columns but the last one have numbers, and `rows` are HTML."""
    *numbers, last = headings
    head = "".join(f'<th class="number">{escape(each)}</th>' for each in numbers)
    return (
        f"<h2>{escape(title)}</h2><table><thead><tr>{head}<th>{escape(last)}</th></tr></thead>"
        f"<tbody>{''.join(rows)}</tbody></table>"
    )


_ESCAPES = str.maketrans({each: f"\\u{ord(each):04x}" for each in "<>&\u2028\u2029"})
"""Escapes of characters that JSON has in strings only, so that they change no value."""


def _script_text(json: str) -> str:
    """The same JSON without characters that have a meaning in HTML.

    `</script` ends the element that contains it, and `<!--` with `<script` hides its end. The
    separators of lines and paragraphs end a line of JavaScript.
    """
    return json.translate(_ESCAPES)


def _documents(figures: Mapping[str, Any]) -> dict[str, object]:
    """The figures as the two arguments of `Bokeh.embed.embed_items`."""
    document = Document()
    for model in figures.values():
        document.add_root(model)
    numbers: dict[str, str] = {}
    # Typed as JSON, returned with its buffers, of which lists in columns have none.
    serialized = cast("Any", document.to_json())
    renumbered = _renumbered(serialized.content, numbers)
    roots = {numbers[model.id]: element for element, model in figures.items()}
    item: dict[str, object] = {"docid": DOCUMENT, "roots": roots, "root_ids": list(roots)}
    return {"documents": {DOCUMENT: renumbered}, "items": [item]}


def _renumbered(value: object, numbers: dict[str, str]) -> object:
    """The value with its ids replaced by numbers in the order of their appearance."""
    if isinstance(value, Mapping):
        entries = cast("Mapping[str, object]", value)
        return {
            key: numbers.setdefault(each, f"k{len(numbers)}")
            if key == "id" and isinstance(each, str)
            else _renumbered(each, numbers)
            for key, each in entries.items()
        }
    if isinstance(value, list | tuple):
        return [_renumbered(each, numbers) for each in cast("Sequence[object]", value)]
    return value
