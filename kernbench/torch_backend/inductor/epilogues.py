"""Elementwise functions of products, which the launch of the product computes before it stores.

A *function of a product* is a node of a graph that follows from the product, and from tensors in
memory of its shape, by elementwise operators alone; and that has to be in memory itself, as an
operand of another product, of attention, or as a result of the graph. Elementwise operators before
a reduction are no epilogues: Inductor computes them in the kernel of the reduction. Sums of few
rows, the gradients of a normalisation's weights, are: a block of the product has all rows.
"""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from math import prod
from typing import Any, NamedTuple

import torch

from runtime.device.products.joined_kernel import SUM_OF_ROWS, Epilogue, EpilogueStep

_aten: Any = torch.ops.aten
_FUNCTIONS = {
    **{getattr(_aten, name).Tensor: name for name in ("add", "sub", "mul", "div")},
    **{
        getattr(_aten, name).default: name
        for name in ("abs", "erf", "exp", "log", "neg", "relu", "rsqrt", "sigmoid", "sqrt", "tanh")
    },
}
PRODUCTS = frozenset({_aten.mm.default, _aten.addmm.default})
"""The operators whose launches may have epilogues."""
RESHAPES = frozenset({_aten.view.default, _aten.reshape.default})
"""The operators whose result has the elements of the operand in their order."""
_TURNS = frozenset({_aten.permute.default, _aten.t.default})
_MOST_STEPS, _MOST_BESIDE = 32, 4
_MOST_ROWS = 128
"""Rows that a PE sums: of more, blocks of rows on several PEs are faster."""
_Node = Any
"""A node of a graph; the types of its arguments are those of all operators."""


class ProductFunctions(NamedTuple):
    """Functions of a product: the steps, the nodes beside it, and the nodes that they replace with
    the numbers of their values.
    """

    steps: tuple[EpilogueStep, ...]
    beside: tuple[_Node, ...]
    nodes: Mapping[_Node, int]

    def epilogue(self, *, keeps_product: bool) -> Epilogue:
        """The epilogue of the product, whose own result is the last one if it is kept."""
        results = (*self.nodes.values(), *((0,) if keeps_product else ()))
        return Epilogue(len(self.beside), self.steps, results)


def text_of(epilogue: Epilogue | None) -> str:
    """An epilogue as an argument of an operator."""
    return (
        "" if epilogue is None else json.dumps([epilogue.beside, epilogue.steps, epilogue.results])
    )


def epilogue_of(text: str) -> Epilogue | None:
    """The epilogue of a text."""
    if not text:
        return None
    beside, steps, results = json.loads(text)
    return Epilogue(
        beside=beside,
        steps=tuple(EpilogueStep(name, tuple(arguments)) for name, arguments in steps),
        results=tuple(results),
    )


class _Places(NamedTuple):
    """Products, nodes that have to be in memory, and the levels of all nodes."""

    products: AbstractSet[_Node]
    kept: AbstractSet[_Node]
    levels: Mapping[_Node, int]


def functions_of_products(
    graph: torch.fx.Graph, products: AbstractSet[_Node], levels: Mapping[_Node, int]
) -> dict[_Node, ProductFunctions]:
    """The functions of each product that has some. `levels` are the numbers of products on the
    longest path to a node and through it.
    """
    places = _Places(products, {node for node in graph.nodes if _is_kept(node)}, levels)
    nodes = defaultdict[_Node, list[_Node]](list)
    for node in graph.nodes:
        if _is_sum_of_rows(node):
            function = node.args[0]
        elif node.target in _FUNCTIONS and node in places.kept and node not in products:
            function = node
        else:
            continue
        operands = _FunctionSteps(function, [], places)
        if not operands.add(function) or len(operands.beside) > 1 + _MOST_BESIDE:
            continue
        last = [each for each in operands.beside if levels[each] == levels[node]]
        # Another product of the same level is not complete before the launch.
        if len(last) == 1 and last[0] in products:
            nodes[last[0]].append(node)
    return {product: _functions(product, each, places) for product, each in nodes.items()}


def _functions(product: _Node, nodes: Sequence[_Node], places: _Places) -> ProductFunctions:
    # The numbers of what is beside the product are in front of those of the steps.
    operands = _FunctionSteps(product, [product], places)
    for node in nodes:
        operands.add(node.args[0] if _is_sum_of_rows(node) else node)
    steps = _FunctionSteps(product, operands.beside, places)
    numbers = {node: steps.number(node) for node in nodes}
    return ProductFunctions(tuple(steps.steps), tuple(steps.beside[1:]), numbers)


class _FunctionSteps:
    """The steps of functions with as many elements as a node, and the nodes that they begin with:
    what is in memory.
    """

    def __init__(self, node: _Node, beside: Sequence[_Node], places: _Places) -> None:
        self._node, self._places = node, places
        self.beside, self.steps = list(beside), list[EpilogueStep]()
        self.numbers = {each: number for number, each in enumerate(self.beside)}

    def number(self, node: _Node) -> int:
        """The number of a function or of a sum of its rows, whose steps are added."""
        if not _is_sum_of_rows(node):
            self.add(node)
            return self.numbers[_reshaped(node)]
        step = EpilogueStep(SUM_OF_ROWS, (self.number(node.args[0]),))
        self.steps.append(step)
        return len(self.beside) + len(self.steps) - 1

    def add(self, node: _Node) -> bool:
        """Add what a node follows from; False if that has another shape, type or order, or is not
        in memory.
        """
        node = _reshaped(node)
        if node in self.numbers:
            return True
        if not _is_alike(node, self._node):
            return False
        products, kept, levels = self._places
        is_result = node in products or (node in kept and levels[node] < levels[self._node])
        if node.target in _FUNCTIONS and not node.kwargs and not is_result:
            return self._add_step(node)
        self.numbers[node] = len(self.beside)
        self.beside.append(node)
        return is_result or node.op == "placeholder"

    def _add_step(self, node: _Node) -> bool:
        arguments = list[int | float]()
        for each in node.args:
            if isinstance(each, torch.fx.Node):
                if not self.add(each):
                    return False
                arguments.append(self.numbers[_reshaped(each)])
            else:
                arguments.append(float(each))
        self.numbers[node] = len(self.beside) + len(self.steps)
        self.steps.append(EpilogueStep(_FUNCTIONS[node.target], tuple(arguments)))
        return len(self.steps) <= _MOST_STEPS


def _is_sum_of_rows(node: _Node) -> bool:
    """Whether a node is the sum over all axes of a matrix but the last one."""
    if node.target is not _aten.sum.dim_IntList or node.kwargs:
        return False
    lengths, axes = node.args[0].meta["val"].shape[:-1], node.args[1]
    return (
        len(lengths) > 0
        and sorted(axes) == list(range(len(lengths)))
        and all(type(each) is int for each in lengths)
        and prod(lengths) <= _MOST_ROWS
    )


def _reshaped(node: _Node) -> _Node:
    """The node whose elements another one has, in the same order."""
    while node.target in RESHAPES:
        node = node.args[0]
    return node


def _is_alike(node: _Node, other: _Node) -> bool:
    """Whether a tensor in row-major order has as many elements as another one, of float32."""
    value, like = node.meta["val"], other.meta["val"]
    return (
        isinstance(value, torch.Tensor)
        and value.device == like.device
        and value.dtype == torch.float32
        and all(type(each) is int for each in (*value.shape, *like.shape))
        and value.numel() == like.numel()
        and value.is_contiguous()
    )


def _is_kept(node: _Node) -> bool:
    """Whether a node has to be in memory."""
    return any(
        user.op == "output"
        or user.target in PRODUCTS
        or getattr(user.target, "namespace", None) == "kernbench"
        or ((user.target in RESHAPES or user.target in _TURNS) and _is_kept(user))
        for user in node.users
    )
