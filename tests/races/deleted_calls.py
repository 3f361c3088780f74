"""Kernels without one of their calls: a wait, a barrier, a send or a receive; or with a send behind
the statement that it has to be in front of.

Only the code of the function changes, so all that refers to it runs the changed one.
"""

import ast
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from inspect import unwrap
from itertools import pairwise
from pathlib import Path
from types import CodeType, FunctionType, SimpleNamespace
from typing import Any, NamedTuple, cast

from runtime.language import tl
from runtime.language.value import Value

CALLS = ("barrier", "wait", "send", "send_async", "recv", "recv_async")
BARRIER_OF_MESSAGES = "cube_barrier"
"""A function of a study: tokens that all PEs of a cube send and receive."""
LATE_SEND = "late send"
"""The kind of a send that is moved behind the next statement, which writes memory or values."""
RANK_PROGRAMS = ("examples/pytorch_", "examples/torch/")
"""The begins of files whose waits are those of ranks: streams wait, and the wait has no row."""
_WRITES = ("store", "store_async", "recv", "recv_async")
_DELETED = "_deleted_call"
"""The global name of what stands for a deleted call whose result is used."""


class CallSite(NamedTuple):
    """A call in a file, in a function or class that has the lines `around`; `is_statement` if
    nothing uses its result. A late send is moved behind the statement in the lines `over`.
    """

    file: str
    line: int
    end: int
    column: int
    function: str
    kind: str
    text: str
    is_statement: bool
    around: tuple[int, int]
    over: tuple[int, int] = (0, 0)

    @property
    def place(self) -> str:
        """The file and the line."""
        return f"{self.file}:{self.line}"

    @property
    def places(self) -> frozenset[str]:
        """The file with each of its lines, as records name them."""
        return self._named(self.line, self.end)

    @property
    def places_around(self) -> frozenset[str]:
        """The file with each line of the function, or of the class."""
        return self._named(*self.around)

    @property
    def places_over(self) -> frozenset[str]:
        """The file with each line of the statement that a late send is moved behind."""
        return self._named(*self.over)

    @property
    def has_row(self) -> bool:
        """Whether the records of a run that reaches the call have its line."""
        is_of_rank = self.file.startswith(RANK_PROGRAMS)
        return not is_of_rank and self.kind != BARRIER_OF_MESSAGES

    @property
    def has_mutant(self) -> bool:
        """Whether there is a program without it. A value of an operation in flight exists only
        behind its wait.
        """
        return self.is_statement or self.kind != "wait"

    def _named(self, first: int, last: int) -> frozenset[str]:
        return frozenset(f"{self.file}:{line}" for line in range(first, last + 1))


def sites_of(root: Path, folders: Sequence[str]) -> list[CallSite]:
    """The calls in the files below folders of `root`."""
    sites = list[CallSite]()
    for folder in folders:
        for path in sorted((root / folder).rglob("*.py")):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            sites += sorted(_sites(tree, str(path.relative_to(root)), (), (0, 0)))
    return sites


def _sites(
    node: ast.AST, file: str, names: tuple[str, ...], around: tuple[int, int]
) -> Iterator[CallSite]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        names, around = (*names, node.name), around if names else _lines(node)
    yield from _late_sends(node, file, names, around)
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Call) and _is_deletable(child) and names:
            function = child.func
            kind = function.attr if isinstance(function, ast.Attribute) else BARRIER_OF_MESSAGES
            text = " ".join(ast.unparse(child).split())
            yield CallSite(
                file=file,
                line=child.lineno,
                end=child.end_lineno or child.lineno,
                column=child.col_offset,
                function=".".join(names),
                kind=kind,
                text=text,
                is_statement=isinstance(node, ast.Expr),
                around=around,
            )
        yield from _sites(child, file, names, around)


def _late_sends(
    node: ast.AST, file: str, names: tuple[str, ...], around: tuple[int, int]
) -> Iterator[CallSite]:
    """The sends, also all of a loop, in front of a statement of a block that writes."""
    for block in _blocks(node):
        for sends, writes in pairwise(block):
            if _is_only_send(sends) and not isinstance(writes, ast.Return) and _writes(writes):
                line, end = _lines(sends)
                yield CallSite(
                    file=file,
                    line=line,
                    end=end,
                    column=sends.col_offset,
                    function=".".join(names),
                    kind=LATE_SEND,
                    text=" ".join(ast.unparse(sends).split()),
                    is_statement=True,
                    around=around,
                    over=_lines(writes),
                )


def _blocks(node: ast.AST) -> Iterator[list[ast.stmt]]:
    for _, field in ast.iter_fields(node):
        if isinstance(field, list) and field and isinstance(field[0], ast.stmt):
            yield field


def _lines(node: ast.stmt) -> tuple[int, int]:
    return node.lineno, node.end_lineno or node.lineno


def _is_only_send(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.For):
        return all(map(_is_only_send, statement.body))
    is_simple = isinstance(statement, ast.Expr | ast.Assign | ast.AugAssign)
    return is_simple and any(
        _is_of_tl(each, ("send", "send_async")) for each in ast.walk(statement)
    )


def _writes(statement: ast.stmt) -> bool:
    return any(
        _is_of_tl(each, _WRITES)
        or (isinstance(each, ast.Call) and any(word.arg == "out" for word in each.keywords))
        for each in ast.walk(statement)
    )


def _is_of_tl(node: ast.AST, names: Sequence[str]) -> bool:
    """Whether it is a call of `tl` with one of some names."""
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in names
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == "tl"
    )


def _is_deletable(call: ast.Call) -> bool:
    """Whether it is a call of `tl`, a wait for an operation in flight, or the other barrier."""
    function = call.func
    if isinstance(function, ast.Name):
        return function.id == BARRIER_OF_MESSAGES
    if _is_of_tl(call, CALLS):
        return True
    return isinstance(function, ast.Attribute) and function.attr == "wait" and not call.args


class _Mutation(ast.NodeTransformer):
    """Replaces the call of a site by nothing, or by what has its result without its effect; moves a
    late send.
    """

    def __init__(self, site: CallSite) -> None:
        self._site = site

    def generic_visit(self, node: ast.AST) -> ast.AST:
        if self._site.kind != LATE_SEND:
            return super().generic_visit(node)
        for block in _blocks(node):
            for number, each in enumerate(block):
                if (*_lines(each), each.col_offset) == self._position:
                    block[number : number + 2] = block[number + 1], each
                    return node
        return super().generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        call = node.value
        if not self._is_site(call):
            return self.generic_visit(node)
        assert isinstance(call, ast.Call), "a site is a call"
        if self._site.kind != "wait":
            return ast.copy_location(ast.Pass(), node)
        # What starts the operation stays.
        is_of_tl = _is_of_tl(call, ("wait",))
        pending = call.args[0] if is_of_tl else cast("ast.Attribute", call.func).value
        return ast.copy_location(ast.Expr(pending), node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if self._is_site(node):
            node.func = ast.copy_location(ast.Name(_DELETED, ast.Load()), node.func)
        return node

    def _is_site(self, node: ast.AST) -> bool:
        site = self._site
        return (
            isinstance(node, ast.Call)
            and site.kind != LATE_SEND
            and (node.lineno, node.end_lineno, node.col_offset) == self._position
            and _is_deletable(node)
        )

    @property
    def _position(self) -> tuple[int, int, int]:
        return self._site.line, self._site.end, self._site.column


@contextmanager
def deleted(root: Path, site: CallSite) -> Generator[None]:
    """The function of a site runs without its call meanwhile."""
    module = import_module(site.file.removesuffix(".py").replace("/", "."))
    function = _function(module, site.function.split("."))
    kept = function.__code__
    tree = _Mutation(site).visit(ast.parse((root / site.file).read_text(encoding="utf-8")))
    code = compile(ast.fix_missing_locations(tree), kept.co_filename, "exec")
    setattr(module, _DELETED, _substitutes.get(site.kind))
    try:
        function.__code__ = _code_of(code, kept.co_qualname)
        yield
    finally:
        function.__code__ = kept
        delattr(module, _DELETED)


def _function(owner: object, names: Sequence[str]) -> FunctionType:
    """The outermost function of the names."""
    for name in names:
        owner = vars(owner)[name]
        for wrapped in ("__func__", "fget", "func"):
            owner = getattr(owner, wrapped, owner)
        if not isinstance(owner, type):
            break
    function: Any = unwrap(owner)  # pyright: ignore[reportArgumentType] - is a function
    assert isinstance(function, FunctionType), names
    return function


def _code_of(code: CodeType, name: str) -> CodeType:
    codes = [code]
    for each in codes:
        if each.co_qualname == name:
            return each
        codes += [const for const in each.co_consts if isinstance(const, CodeType)]
    raise LookupError(name)


def _no_wait(*_: object, **__: object) -> Any:
    return SimpleNamespace(wait=lambda: None)


def _no_receive(
    _direction: str | None = None,
    shape: Any = None,
    dtype: Any = None,
    *,
    dst_addr: Any = None,
    **_: object,
) -> Any:
    """The result of a receive, with the elements that were there before."""
    if isinstance(dst_addr, Value):
        return dst_addr
    return None if dst_addr is not None else tl.empty(shape, dtype)


def _no_receive_in_flight(*arguments: Any, **options: Any) -> Any:
    return SimpleNamespace(wait=lambda: _no_receive(*arguments, **options))


_substitutes = {
    "send_async": _no_wait,
    "recv": _no_receive,
    "recv_async": _no_receive_in_flight,
}
