"""The source files of a program, as far as they are seen without executing it."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from coordinator.plan import ProgramSpec
from runtime.core.code.bench_source import is_file, split_source


class ProgramFiles(NamedTuple):
    """A program and the modules beside it that it imports, and the names of other packages."""

    files: frozenset[Path]
    outside: frozenset[str]


def read_program(file: Path) -> ProgramFiles:
    """The files and the packages that a source file and the modules of its folder import."""
    pending, seen = [file], {file}
    outside = set[str]()
    while pending:
        each = pending.pop()
        for name in _imported(each):
            own = _beside(each.parent, name)
            if not own:
                outside.add(name)
            pending += [other for other in own if other not in seen]
            seen.update(own)
    return ProgramFiles(frozenset(seen), frozenset(outside))


def program_file(program: ProgramSpec) -> Path | None:
    """The file of a script, a module or a user's bench; None where it is not seen from here."""
    if program.kind == "script":
        return Path(program.path)
    if program.kind == "module":
        base = Path.cwd().joinpath(*program.path.split("."))
        near = (base.with_suffix(".py"), base / "__main__.py")
        return next((each for each in near if each.is_file()), None)
    module = split_source(program.path)[0]
    return Path(module) if program.kind == "bench" and is_file(module) else None


def _imported(file: Path) -> Iterator[str]:
    """The packages that a source file names in imports; none if it cannot be read."""
    try:
        tree = ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError):
        # The rank reports it.
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (each.name.partition(".")[0] for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield (node.module or "").partition(".")[0] if not node.level else ""


def _beside(folder: Path, name: str) -> list[Path]:
    """The files of a module or a package in a folder."""
    module = folder / f"{name}.py"
    return [module] if module.is_file() else sorted((folder / name).rglob("*.py")) if name else []
