"""Checks the import paths of a configuration file without importing what they name.

The command that reads `ccl.yaml` runs neither kernels nor the simulation, so it must not load a
user's algorithm: that would run the user's code in a process that has no rank, and load all that
the algorithm imports. A module is found by the finders of Python's import system, and its names are
read from the syntax tree of its source. Where the source does not decide (a star import, a
module-level `__getattr__`, a compiled module), every name counts as present, and the rank that uses
the algorithm reports what is missing.
"""

import ast
import sys
from collections.abc import Iterable, Iterator, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from pkgutil import iter_modules

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


class ImportPathError(Exception):
    """An import path leads nowhere. Field: the reason."""


def module_names(module: str, directories: Sequence[str] = ()) -> frozenset[str] | None:
    """The names that a module defines; None where its source does not decide. `ImportPathError` if
    there is no such module.

    `directories` are searched before the import path of this process.
    """
    loaded = sys.modules.get(module)
    if loaded is not None:
        names = frozenset(name for name, value in vars(loaded).items() if value is not None)
        return None if "__getattr__" in names else names
    spec = _find(module, directories)
    if spec.origin is None or not spec.origin.endswith(".py"):
        return None
    try:
        tree = ast.parse(Path(spec.origin).read_bytes(), spec.origin)
    except SyntaxError as error:
        raise ImportPathError(f"{error.msg} ({spec.origin}, line {error.lineno})") from None
    names = frozenset(_bound_names(tree))
    # A star import binds names of another module, which may import others in turn.
    return None if names & {"*", "__getattr__"} else names


def check_attribute(path: str, directories: Sequence[str] = ()) -> None:
    """`ImportPathError` unless the module of `package.module:name` or `package.module.name` exists
    and defines the name.
    """
    module, _, attribute = path.rpartition(":" if ":" in path else ".")
    names = module_names(module, directories)
    if names is not None and attribute not in names:
        raise ImportPathError(
            f"module {module!r} has no attribute {attribute!r}{_suggestion(attribute, names)}"
        )


def _find(module: str, directories: Sequence[str]) -> ModuleSpec:
    parts, locations = module.split("."), None
    spec: ModuleSpec | None = None
    for count, part in enumerate(parts, 1):
        name = ".".join(parts[:count])
        # An empty part, as in `a..b`, names no module.
        if not part.isidentifier():
            raise ImportPathError(f"{module!r} is not the path of a module")
        if spec is not None and locations is None:
            raise ImportPathError(f"{spec.name!r} is a module, not a package")
        spec = _spec(name, locations, directories)
        if spec is None:
            siblings = (
                f"{name.rpartition('.')[0]}.{each.name}" for each in iter_modules(locations or ())
            )
            raise ImportPathError(f"No module named {name!r}{_suggestion(name, siblings)}")
        locations = spec.submodule_search_locations
    assert spec is not None
    return spec


def _spec(
    name: str, locations: Sequence[str] | None, directories: Sequence[str]
) -> ModuleSpec | None:
    # importlib.util.find_spec would import the parent package of `name`; the finders alone do not.
    if locations is None:
        spec = PathFinder.find_spec(name, directories)
        if spec is not None:
            return spec
    for finder in sys.meta_path:
        spec = finder.find_spec(name, locations)
        if spec is not None:
            return spec
    return None


def _bound_names(scope: ast.AST) -> Iterator[str]:
    """The names that the statements of a scope bind, without those of functions and classes inside
    it.
    """
    for node in ast.iter_child_nodes(scope):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.name
            case ast.Import() | ast.ImportFrom():
                yield from (each.asname or each.name.partition(".")[0] for each in node.names)
            case ast.Name(ctx=ast.Store()):
                yield node.id
            case _:
                pass
        if not isinstance(node, _SCOPES):
            yield from _bound_names(node)


def _suggestion(name: str, known: Iterable[str]) -> str:
    # Loaded where a name is wrong, since it is large.
    from difflib import get_close_matches

    match = get_close_matches(name, sorted(known), n=1, cutoff=0.5)
    return f"; did you mean {match[0]!r}?" if match else ""
