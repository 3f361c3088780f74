"""Elementwise functions of products, as epilogues of the products."""

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make setup-torch")

from kernbench.torch_backend.inductor.epilogues import (  # noqa: E402 - PyTorch is an extra
    PRODUCTS,
    ProductFunctions,
    epilogue_of,
    functions_of_products,
    text_of,
)

aten: Any = torch.ops.aten


class Graph:
    """A graph of operators on tensors of a CPU."""

    def __init__(self) -> None:
        self.graph = torch.fx.Graph()

    def tensor(self, *shape: int) -> Any:
        node = self.graph.placeholder(f"x{len(self.graph.nodes)}")
        node.meta["val"] = torch.empty(shape)
        return node

    def call(self, target: Any, *given: Any) -> Any:
        node = self.graph.call_function(target, given)
        node.meta["val"] = target(
            *(each.meta["val"] if isinstance(each, torch.fx.Node) else each for each in given)
        )
        return node

    def functions(self, *results: Any) -> dict[Any, ProductFunctions]:
        self.graph.output(results)
        levels = dict[Any, int]()
        for node in self.graph.nodes:
            before = max((levels[each] for each in node.all_input_nodes), default=0)
            levels[node] = before + (node.target in PRODUCTS)
        products = {node for node in self.graph.nodes if node.target in PRODUCTS}
        return functions_of_products(self.graph, products, levels)


def test_a_function_between_two_products_is_an_epilogue_of_the_first():
    graph = Graph()
    x, w = graph.tensor(8, 4), graph.tensor(4, 4)
    product = graph.call(aten.mm.default, x, w)
    shaped = graph.call(aten.reshape.default, product, [2, 4, 4])
    half = graph.call(aten.mul.Tensor, shaped, 0.5)
    bent = graph.call(aten.add.Tensor, graph.call(aten.erf.default, shaped), 1)
    result = graph.call(aten.mul.Tensor, half, bent)
    flat = graph.call(aten.reshape.default, result, [8, 4])
    functions = graph.functions(graph.call(aten.mm.default, flat, w))
    assert list(functions) == [product]
    epilogue = functions[product].epilogue(keeps_product=True)
    assert epilogue.beside == 0
    assert [tuple(each) for each in epilogue.steps] == [
        ("mul", (0, 0.5)),
        ("erf", (0,)),
        ("add", (2, 1.0)),
        ("mul", (1, 3)),
    ]
    assert epilogue.results == (4, 0)


def test_a_tensor_in_memory_is_beside_the_product():
    graph = Graph()
    x, w, y = graph.tensor(8, 4), graph.tensor(4, 4), graph.tensor(8, 4)
    product = graph.call(aten.mm.default, x, w)
    result = graph.call(aten.mul.Tensor, product, graph.call(aten.tanh.default, y))
    functions = graph.functions(result)
    assert functions[product].beside == (y,)
    epilogue = functions[product].epilogue(keeps_product=False)
    assert [tuple(each) for each in epilogue.steps] == [("tanh", (1,)), ("mul", (0, 2))]
    assert epilogue.results == (3,)


def test_a_function_of_two_products_of_a_level_is_none_of_either():
    graph = Graph()
    x, w, v = graph.tensor(8, 4), graph.tensor(4, 4), graph.tensor(4, 4)
    gate, up = (graph.call(aten.mm.default, x, each) for each in (w, v))
    assert not graph.functions(graph.call(aten.mul.Tensor, gate, up))


@pytest.mark.parametrize("shape", [(4,), (8, 1)], ids=["row", "column"])
def test_a_tensor_that_is_repeated_is_not_beside_a_product(shape: tuple[int, ...]):
    graph = Graph()
    x, w, y = graph.tensor(8, 4), graph.tensor(4, 4), graph.tensor(*shape)
    product = graph.call(aten.mm.default, x, w)
    assert not graph.functions(graph.call(aten.mul.Tensor, product, y))


def test_a_function_that_is_only_reduced_is_left_to_the_kernel_of_the_reduction():
    graph = Graph()
    x, w = graph.tensor(8, 4), graph.tensor(4, 4)
    bent = graph.call(aten.exp.default, graph.call(aten.mm.default, x, w))
    assert not graph.functions(graph.call(aten.sum.dim_IntList, bent, [1]))


def test_the_text_of_an_epilogue_is_the_epilogue():
    graph = Graph()
    x, w, y = graph.tensor(8, 4), graph.tensor(4, 4), graph.tensor(8, 4)
    product = graph.call(aten.mm.default, x, w)
    result = graph.call(aten.sub.Tensor, graph.call(aten.mul.Tensor, product, 0.1), y)
    (own,) = graph.functions(result).values()
    epilogue = own.epilogue(keeps_product=True)
    assert epilogue_of(text_of(epilogue)) == epilogue
    assert epilogue_of(text_of(None)) is None
