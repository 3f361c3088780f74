"""`python -m tests.renew_keys`: texts about the keys of `topology.yaml` are those of the schema.

It writes the comment behind each key of `topology.yaml`, and the table of docs/keys.md except its
last column, which names the source of the value. A new key has a dash there until a person writes
its source.
"""

import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from runtime.model.keys import HardwareKey, hardware_keys, value_text
from runtime.model.topology import shipped_values

ROOT = Path(__file__).parents[1]
PAGE, FILE = ROOT / "docs" / "keys.md", ROOT / "topology.yaml"
BEGIN = "<!-- python -m tests.renew_keys writes all columns but the last -->\n"
END = "<!-- end of the keys -->\n"
HEADING = "| key | unit | default | meaning | source |\n| --- | --- | --- | --- | --- |\n"
CLASSES = "impl."
"""Keys with one meaning, which the page has in a sentence."""
COMMENT_COLUMN = 27
NONE = "\N{EN DASH}"
"""A cell without content."""
LEAF = re.compile(r"(?P<indent> *)(?P<name>\w+):(?P<value> .*?)?(?P<comment> +# .*)?$")
INNER = re.compile(r"(\w+):")
IDENTIFIER = re.compile(r"(?<![\w-])(?:[a-z]+\.)*[a-z0-9]+(?:[_.][a-z0-9]+)+\b")


def main() -> int:
    """Write both files."""
    PAGE.write_text(renewed_page(PAGE.read_text("utf-8")), "utf-8")
    FILE.write_text(renewed_file(FILE.read_text("utf-8")), "utf-8")
    return 0


def renewed_page(page: str) -> str:
    """The page with the table of all keys."""
    before, _, rest = page.partition(BEGIN)
    table, _, after = rest.partition(END)
    sources = {
        line.split("`")[1]: line.rstrip().removesuffix("|").rpartition(" | ")[2].strip()
        for line in table.splitlines()
        if line.startswith("| `")
    }
    values = shipped_values()
    rows = "".join(
        _row(key, values[key.path], sources.get(key.path, NONE))
        for key in hardware_keys()
        if not key.path.startswith(CLASSES)
    )
    return f"{before}{BEGIN}\n{HEADING}{rows}\n{END}{after}"


def _row(key: HardwareKey, value: object, source: str) -> str:
    default = f"`{value}`" if key.kind in {"choice", "name"} else value_text(value)
    meaning = IDENTIFIER.sub(lambda name: f"`{name[0]}`", key.acts_on)
    return f"| `{key.path}` | {key.unit or NONE} | {default} | {meaning} | {source} |\n"


def renewed_file(text: str) -> str:
    """The file with what each key acts on in the comment behind it; other comments stay."""
    meanings = {key.path: key.acts_on for key in hardware_keys()}
    return "".join(f"{line}\n" for line in _commented(text, meanings))


def _commented(text: str, meanings: Mapping[str, str]) -> Iterator[str]:
    sections = list[str]()
    for line in text.splitlines():
        match = LEAF.match(line)
        if line.lstrip().startswith("#") or not match:
            yield line
            continue
        sections[len(match["indent"]) // 2 :] = [match["name"]]
        path, value = ".".join(sections), (match["value"] or "").rstrip()
        inner = INNER.findall(value) if value.startswith(" {") else []
        found = [meanings[f"{path}.{name}"] for name in inner] or [meanings.get(path, "")]
        code = f"{match['indent']}{match['name']}:{value}"
        column = max(COMMENT_COLUMN, len(code) + 2)
        yield f"{code:<{column}}# {'; '.join(found)}" if found[0] else line


if __name__ == "__main__":
    sys.exit(main())
