"""Reads a routing file: the experts of each token, a line each.

    # experts of a token, the first line is token 0
    3 7
    0 3

Numbers are separated by spaces or commas; empty lines, and what follows a `#`, are ignored. All
tokens have equally many experts, all different. Each rank gets the next `lines / ranks` tokens.
"""

from collections.abc import Iterator
from pathlib import Path

from runtime.core.errors import UsageError

Tokens = tuple[tuple[int, ...], ...]
"""The experts of each token."""


def read_routing(path: Path, experts: int) -> Tokens:
    """The content of a file; raises `UsageError` with the line for invalid ones."""
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise UsageError(f"--routing {path} cannot be read: {reason}") from error
    tokens = list[tuple[int, ...]]()
    for where, words in _lines(path, text):
        chosen = _token(where, words, experts)
        if tokens and len(chosen) != len(tokens[0]):
            raise UsageError(
                f"{where}: {len(chosen)} experts, the first token has {len(tokens[0])}"
            )
        tokens.append(chosen)
    if not tokens:
        raise UsageError(f"--routing {path}: there is no token, a line of experts for each")
    return tuple(tokens)


def _lines(path: Path, text: str) -> Iterator[tuple[str, list[str]]]:
    """Where each line with numbers is, and its words."""
    for number, line in enumerate(text.splitlines(), 1):
        words = line.partition("#")[0].replace(",", " ").split()
        if words:
            yield f"--routing {path}, line {number}", words


def _token(where: str, words: list[str], experts: int) -> tuple[int, ...]:
    for word in words:
        if not (word.isascii() and word.isdigit()) or int(word) >= experts:
            raise UsageError(
                f"{where}: {word!r} is no expert; with --experts {experts} they are 0 to "
                f"{experts - 1}"
            )
    chosen = tuple(map(int, words))
    if len(set(chosen)) < len(chosen):
        raise UsageError(f"{where}: the experts of a token must differ")
    return chosen
