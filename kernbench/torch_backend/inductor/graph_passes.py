"""Passes over a graph before Inductor generates code.

- Products of one level become one operator. The level of a product is the number of products on the
  longest path before it, so products of one level are independent, and a graph whose levels are
  joined has no cycle.
  Elementwise functions of a product are part of its operator (`epilogues`).
- Operators that write elements at computed addresses stay operators: the device has kernels for
  them, and programs of a generated kernel may not write one element twice.
"""

from collections import defaultdict
from collections.abc import Mapping
from operator import getitem
from typing import Any

import torch
from torch._inductor.custom_graph_pass import CustomGraphModulePass
from torch._inductor.pattern_matcher import stable_topological_sort

from kernbench.torch_backend.inductor.epilogues import (
    RESHAPES,
    ProductFunctions,
    functions_of_products,
    text_of,
)
from kernbench.torch_backend.inductor.graph_operators import graph_products
from kernbench.torch_backend.runtime.pytorch_api import DEVICE, overload_of

_aten: Any = torch.ops.aten
_SCATTERS = frozenset(
    {
        *(_aten.index_put, _aten.index_put_, _aten.scatter, _aten.masked_scatter),
        *(_aten.scatter_, _aten.scatter_add, _aten.scatter_add_, _aten.scatter_reduce),
        *(_aten.scatter_reduce_, _aten.index_add, _aten.index_add_),
        getattr(_aten, "_unsafe_index_put"),  # noqa: B009 - no public name
    }
)
_VIEWS = frozenset(
    {_aten.permute.default, _aten.view.default, _aten.reshape.default, _aten.t.default}
)
_TYPES = frozenset({torch.float16, torch.bfloat16, torch.float32})
_MOST = 16
"""Products of a launch, whose operands are all in memory until it is complete."""
_SUMMED = 1 << 20
"""Elements of a matrix whose columns are summed by a product: of a larger one, the sum takes longer
than the launch that is saved.
"""
_Node = Any
"""A node of a graph; the types of its arguments are those of all operators."""


class DevicePasses(CustomGraphModulePass):
    """The passes of the device, in their order."""

    def __call__(self, gm: torch.fx.GraphModule) -> None:
        """Change a graph."""
        for node in gm.graph.nodes:
            if getattr(node.target, "overloadpacket", None) in _SCATTERS:
                node.meta["should_fallback"] = True
        _sum_by_products(gm.graph)
        _join_products(gm.graph)

    def uuid(self) -> Any:
        """A name for caches."""
        return f"{DEVICE}-{_MOST}-{_SUMMED}"


def _sum_by_products(graph: torch.fx.Graph) -> None:
    """Make sums of the columns of a matrix that is an operand of a product, such as gradients of
    biases, products with a row of ones.
    """
    factors = {
        _storage(each) for node in graph.nodes if _is_product(node) for each in node.args[-2:]
    }
    rows = dict[tuple[int, torch.dtype], _Node]()
    for node in list(graph.nodes):
        if node.target is not _aten.sum.dim_IntList or node.kwargs:
            continue
        matrix, axes, *keeps = node.args
        value = matrix.meta["val"]
        is_product = (
            axes == [0] and value.dim() == 2 and _storage(matrix) in factors and _is_own(node)
        )
        if not is_product or not all(type(each) is int for each in value.shape):
            continue
        if value.dtype not in _TYPES or value.numel() > _SUMMED or not value.numel():
            continue
        with graph.inserting_before(node):
            # The first sum of this length has the row in front of it, and the others come behind.
            key = value.shape[0], value.dtype
            if key not in rows:
                rows[key] = _ones(graph, value)
            result = _added(graph, _aten.mm.default, (rows[key], matrix))
            if not (keeps and keeps[0]):
                result = _added(graph, _aten.squeeze.dim, (result, 0))
        node.replace_all_uses_with(result)
        graph.erase_node(node)


def _ones(graph: torch.fx.Graph, value: Any) -> _Node:
    node = graph.call_function(
        _aten.full.default,
        ([1, value.shape[0]], 1.0),
        {"dtype": value.dtype, "device": value.device, "pin_memory": False},
    )
    node.meta["val"] = value.new_empty((1, value.shape[0]))
    return node


def _added(graph: torch.fx.Graph, target: Any, given: tuple[Any, ...]) -> _Node:
    node = graph.call_function(target, given)
    values = [each.meta["val"] if isinstance(each, torch.fx.Node) else each for each in given]
    node.meta["val"] = target(*values)
    return node


def _storage(node: _Node) -> _Node:
    """The node whose elements a view has."""
    while node.target in _VIEWS:
        node = node.args[0]
    return node


def _join_products(graph: torch.fx.Graph) -> None:
    levels = dict[_Node, int]()
    for node in graph.nodes:
        before = max((levels[each] for each in node.all_input_nodes), default=0)
        levels[node] = before + _is_product(node)
    sums = _sums_of_products(graph, levels)
    parts = {each for products in sums.values() for each in products}
    alike = defaultdict[tuple[int, torch.dtype], list[_Node]](list)
    for node in graph.nodes:
        if node in sums or (_is_product(node) and node not in parts):
            alike[levels[node], node.meta["val"].dtype].append(node)
    each_product = {node for products in alike.values() for node in products}
    functions = functions_of_products(graph, each_product, levels)
    replaced = dict[_Node, _Node]()
    for products in alike.values():
        for first in range(0, len(products), _MOST):
            _join(graph, products[first : first + _MOST], sums, functions, replaced)
    stable_topological_sort(graph)
    graph.lint()


def _sums_of_products(
    graph: torch.fx.Graph, levels: Mapping[_Node, int]
) -> dict[_Node, list[_Node]]:
    """The products of each node that is a sum of products of one level, which nothing else uses."""
    sums = dict[_Node, list[_Node]]()
    for node in graph.nodes:
        if node.target is not _aten.add.Tensor or node.kwargs:
            continue
        products, inner = list[_Node](), list[_Node]()
        for each in node.args:
            base = _only_used(each, node)
            if base in sums:
                inner.append(base)
                products += sums[base]
            elif base is not None and base.target is _aten.mm.default and _is_own(base):
                products.append(base)
            else:
                break
        else:
            shapes = {(each.meta["val"].shape, levels[each]) for each in products}
            if len(shapes) == 1:
                sums[node] = products
                for each in inner:
                    del sums[each]
    return sums


def _only_used(node: _Node, user: _Node) -> _Node | None:
    """The node whose elements an operand has, if only one other node uses them."""
    while isinstance(node, torch.fx.Node) and list(node.users) == [user]:
        if node.target not in RESHAPES:
            return node
        user, node = node, node.args[0]
    return None


def _is_product(node: _Node) -> bool:
    if node.target is _aten.mm.default:
        return _is_own(node)
    if node.target is not _aten.addmm.default or node.kwargs or not _is_own(node):
        return False
    bias = node.args[0].meta["val"]
    return bias.dim() == 1 and bias.shape[0] == node.meta["val"].shape[1]


def _is_own(node: _Node) -> bool:
    return node.meta["val"].device.type == DEVICE


def _join(
    graph: torch.fx.Graph,
    products: list[_Node],
    sums: Mapping[_Node, list[_Node]],
    functions: Mapping[_Node, ProductFunctions],
    replaced: dict[_Node, _Node],
) -> None:
    """Put one operator in the place of products, sums of products, and functions of them."""
    parts = [sums.get(node, [node]) for node in products]
    a, b = ([node.args[at] for each in parts for node in each] for at in (-2, -1))
    biased = [number for number, ((first, *_)) in enumerate(parts) if len(first.args) == 3]
    biases = [parts[number][0].args[0] for number in biased]
    with graph.inserting_after(products[-1]):
        joined = graph.call_function(overload_of(graph_products()))
    joined.args = (a, b, [len(each) for each in parts], biases, biased, [], [])
    beside, texts, values = list[_Node](), list[str](), list[Any]()
    for node, own_parts in zip(products, parts, strict=True):
        own, epilogue = functions.get(node), None
        if own is not None:
            for each in own.nodes:
                replaced[each] = _put(graph, each, joined, own_parts[0], values)
                _erase(graph, each)
            epilogue = own.epilogue(keeps_product=len(node.users) > 0)
            others = (replaced.get(each, each) for each in own.beside)
            beside += [_shaped(graph, each, own_parts[0], joined) for each in others]
        if own is None or node.users:
            replaced[node] = _put(graph, node, joined, own_parts[0], values)
        _erase_sum(graph, node, own_parts)
        texts.append(text_of(epilogue))
    joined.args = (*joined.args[:5], beside, texts)
    joined.meta["val"] = values


def _put(
    graph: torch.fx.Graph, node: _Node, joined: _Node, product: _Node, values: list[Any]
) -> _Node:
    """Put the next result of an operator in the place of a node."""
    with graph.inserting_after(joined):
        result = graph.call_function(getitem, (joined, len(values)))
    value = product.meta["val"]
    is_sum = node is not product and node.target is _aten.sum.dim_IntList
    values.append(value.new_empty(value.shape[1]) if is_sum else value)
    result.meta["val"] = values[-1]
    if node is product:
        result.meta.update(node.meta)
    with graph.inserting_after(result):
        result = _shaped(graph, result, node)
    node.replace_all_uses_with(result)
    return result


def _shaped(graph: torch.fx.Graph, node: _Node, like: _Node, before: _Node | None = None) -> _Node:
    """The elements of a node in the shape of another one."""
    shape = like.meta["val"].shape
    if node.meta["val"].shape == shape:
        return node
    if before is None:
        return _added(graph, _aten.reshape.default, (node, list(shape)))
    with graph.inserting_before(before):
        return _added(graph, _aten.reshape.default, (node, list(shape)))


def _erase_sum(graph: torch.fx.Graph, node: _Node, products: list[_Node]) -> None:
    """Erase a product, or a sum and its products."""
    if node not in products:
        _erase(graph, node)
    for each in products:
        graph.erase_node(each)


def _erase(graph: torch.fx.Graph, node: _Node) -> None:
    """Erase a function without users, and what only it uses, up to products."""
    if node.users or node.op != "call_function" or _is_product(node):
        return
    inputs = node.all_input_nodes
    graph.erase_node(node)
    for each in inputs:
        _erase(graph, each)
