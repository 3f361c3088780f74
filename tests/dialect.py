"""Counts phrases that plain technical English does not use, in docstrings, comments, messages and pages.

`python tests/dialect.py [PATH ...]` prints `file:line: phrase` and a total; without a path it reads the whole project.
Machines send, receive, report and wait; they do not tell, hear, say, ask, know, owe or want. A number stands where "so
many" would, a noun where "the one of" would.
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
    "topology.yaml",
    "ccl.yaml",
    "pyproject.toml",
    "Makefile",
)
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
    r"of (?:my|your) own",
    r"the look of",
    r"the way of",
    r"the way (?:in|out|back|there|round)",
    r"what is (?:told|said|wanted|asked)",
    r"who (?:is|are|has|have|reads|waits|sends)",
)
PHRASE = re.compile(rf"(?<![\w`'./-])(?:{'|'.join(PHRASES)})(?![\w`'(=-])", re.IGNORECASE)


def phrases(text: str) -> list[str]:
    """The phrases in a piece of prose; what stands in backquotes is code."""
    return PHRASE.findall(re.sub(r"`[^`]*`", "``", text))


def prose_of_python(source: str) -> Iterator[tuple[int, str]]:
    """(line, text) of every comment and every line of a string of a Python file."""
    kinds = {
        tokenize.COMMENT,
        tokenize.STRING,
        getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING),
    }
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type in kinds:
            for offset, line in enumerate(token.string.splitlines()):
                yield token.start[0] + offset, line


def prose_of_page(text: str) -> Iterator[tuple[int, str]]:
    """(line, text) of a page, without its fenced blocks."""
    fenced = False
    for number, line in enumerate(text.splitlines(), start=1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced:
            yield number, line


def findings(path: Path) -> list[str]:
    """`file:line: phrase` for every phrase in a file."""
    text = path.read_text(encoding="utf-8")
    lines = prose_of_python(text) if path.suffix == ".py" else prose_of_page(text)
    return [f"{path}:{number}: {phrase}" for number, line in lines for phrase in phrases(line)]


def files(paths: list[Path]) -> Iterator[Path]:
    """The Python files, pages and configuration files at and below `paths`, without this one."""
    for path in paths:
        found = [path] if path.is_file() else sorted(path.rglob("*"))
        yield from (
            file
            for file in found
            if file.suffix in (".py", ".md", ".yaml", ".toml", "")
            and file.is_file()
            and file != Path(__file__)
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
