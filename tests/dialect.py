"""Finds phrases that plain technical English does not use, in prose and in names of tests.

`python tests/dialect.py [PATH ...]` reads comments, strings and names of tests of Python files, and
pages; without a path all of the project. It prints `file:line: phrase` and a total. Machines send,
receive, report and wait; they do not tell, hear, say, ask, know, owe or want. A number stands where
"so many" would, a noun where "the one of" would.
"""

import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PATHS = (
    "runtime",
    "sip_node",
    "coordinator",
    "kernbench",
    "examples",
    "tests",
    "docs",
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "RELEASING.md",
    "SECURITY.md",
    "topology.yaml",
    "ccl.yaml",
    "pyproject.toml",
    "Makefile",
)
EXAMPLES = (Path(__file__), Path(__file__).parent / "unit" / "test_style.py")
"""Files which quote the phrases."""
BREAK = r"(?:\s|#)+"
"""The gap between two words: a space, or the end of a line, also of a comment."""
PYTHON = (".py", ".pyi", ".pyx", ".pxd")
"""Cython consists of the same tokens."""
PHRASES = (
    r"tells?",
    r"telling",
    r"told",
    r"hears?",
    r"heard(?: of)?",
    r"knows?",
    r"knew",
    r"asks?",
    r"asked",
    r"asking",
    r"says?",
    r"said",
    r"saying",
    r"speaks?",
    r"spoken",
    r"owes?",
    r"owed",
    r"wants?",
    r"wanted",
    r"whoever",
    r"nobody",
    r"somebody",
    r"everybody",
    r"so many",
    r"so much",
    r"as many as (?:it|they|there)",
    r"one's",
    r"the ones? (?:of|on|in|for|at|that|with|before|behind|after|above|below|from|to|by)",
    r"a word given",
    r"gets? on",
    r"looks? around",
    r"for ever",
    r"comes? to (?:it|them)",
    r"of (?:my|your) own(?! \w)",
    r"the look of",
    r"the way of",
    r"the way (?:in|out|back|there|round)",
    r"what is (?:told|said|wanted|asked)",
    r"who (?:is|are|has|have|reads|waits|sends)",
    r"whatever",
    r"anybody",
    r"so long as",
    r"for a while",
    r"again and again",
    r"in (?:its|their) turn",
    r"of them all",
    r"to be had",
    r"goes? round",
    r"takes? the place of",
    r"as (?:it is|they are)(?=[.,;:)])",
    r"(?:first|last|next) words?",
)
PHRASE = re.compile(
    rf"(?<![\w`'./-])(?:{'|'.join(PHRASES).replace(' ', BREAK)})(?![\w`'(=-])", re.IGNORECASE
)
SIMILAR = re.compile(
    rf"(?<![a-z])(?:{'|'.join(PHRASES).replace(' ', BREAK)})(?![a-z])", re.IGNORECASE
)
"""Pattern of every phrase, in code too: most files have no match, and are not tokenized then."""
CODE = re.compile(r"(`+).*?\1", re.DOTALL)
REPLACEMENT_FIELD = re.compile(r"\{[^{}]*\}")
STRINGS = {tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)}
Prose = tuple[int, str]
"""The number of its first line, and a text that may go on over several lines."""


def phrases(text: str) -> Iterator[tuple[int, str]]:
    """(lines from the start, phrase) of a text; what stands in backquotes is code."""
    plain = CODE.sub(lambda code: "`" + "\n" * code[0].count("\n") + "`", text)
    for found in PHRASE.finditer(plain):
        yield plain.count("\n", 0, found.start()), re.sub(rf"{BREAK}", " ", found[0])


def prose_of_python(source: str) -> Iterator[Prose]:
    """Comments, each with those in the lines after it, and strings without the code in them."""
    comment: list[str] = []
    first = 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            first = first if comment else token.start[0]
            comment.append(token.string)
            continue
        if token.type == tokenize.NL:
            continue
        if comment:
            yield first, "\n".join(comment)
            comment = []
        if token.type in STRINGS:
            is_formatted = re.match(r"(?i)r?f", token.string) is not None
            text = REPLACEMENT_FIELD.sub("{}", token.string) if is_formatted else token.string
            yield token.start[0], text
        elif token.type == tokenize.NAME and token.string.startswith("test_"):
            yield token.start[0], token.string.replace("_", " ")


def prose_of_page(text: str) -> Iterator[Prose]:
    """The text of a page without its fenced blocks."""
    lines, fenced = list[str](), False
    for line in text.splitlines():
        opens_or_closes = line.lstrip().startswith("```")
        fenced ^= opens_or_closes
        lines.append("" if fenced or opens_or_closes else line)
    yield 1, "\n".join(lines)


def findings(path: Path) -> list[str]:
    """`file:line: phrase` for every phrase in a file."""
    text = path.read_text(encoding="utf-8")
    # In names of tests an underscore is a space.
    if not SIMILAR.search(text.replace("_", " ")):
        return []
    parts = prose_of_python(text) if path.suffix in PYTHON else prose_of_page(text)
    return [
        f"{path}:{first + offset}: {phrase}"
        for first, part in parts
        for offset, phrase in phrases(part)
    ]


def files(paths: list[Path]) -> Iterator[Path]:
    """The Python and Cython files, pages and configuration files at and below `paths`."""
    for path in paths:
        found = [path] if path.is_file() else sorted(path.rglob("*"))
        yield from (
            file
            for file in found
            if file.suffix in (*PYTHON, ".md", ".yaml", ".toml", "")
            and file.is_file()
            and file.resolve() not in EXAMPLES
        )


def main(words: list[str]) -> int:
    """Print every finding and the total; 1 where there is one."""
    found = [
        each
        for file in files([Path(word) for word in words or map(str, (ROOT / p for p in PATHS))])
        for each in findings(file)
    ]
    print(*found, f"{len(found)} phrases", sep="\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
