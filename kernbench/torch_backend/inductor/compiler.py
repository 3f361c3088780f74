"""Compiles graphs with tensors of the device by Inductor.

The source of a generated kernel is a file of the user's cache, whose name is its hash, so that a
profile can show its lines. A cache has nothing else: each run compiles its graphs.
"""

import atexit
import copy
import gc
import os
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from functools import cache, wraps
from importlib import import_module
from importlib.util import find_spec, module_from_spec
from pathlib import Path
from typing import Any

import torch

from kernbench.torch_backend.aten.products.attention_operators import (
    GRAPH_ATTENTION,
    GraphAttention,
)
from kernbench.torch_backend.inductor.graph_report import GraphReport
from kernbench.torch_backend.runtime.pytorch_api import DEVICE, Inductor, replace

_OWN = frozenset({torch.ops.aten.embedding_dense_backward.default})
"""Operators that stay whole, since the device has kernels for them."""
_SOURCES = "TORCHINDUCTOR_CACHE_DIR"
_REMEDY = (
    f"torch.compile on {DEVICE!r} without a backend's name generates Triton kernels: install "
    "Triton by make setup-triton, or pip install 'kernbench[triton]'; backend='aot_eager' needs "
    "no Triton"
)


def register_inductor() -> None:
    """Let the default backend of `torch.compile` generate kernels for the device."""
    # Before PyTorch sets it, which it does where it first looks for its caches.
    cache_home = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    os.environ.setdefault(_SOURCES, str(cache_home / "kernbench" / "inductor"))
    replace(Inductor, "__call__", _calling)


def _calling(compile_graph: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(compile_graph)
    def call(
        self: Any,
        model: torch.fx.GraphModule,
        inputs: Sequence[Any],
        *,
        config_patches: dict[str, Any] | None = None,
    ) -> Any:
        if not _is_on_device(model, inputs):
            return compile_graph(self, model, inputs, config_patches=config_patches)
        return _compiled(self, model, inputs, config_patches or {})

    return call


def _is_on_device(model: torch.fx.GraphModule, inputs: Sequence[Any]) -> bool:
    values = (node.meta.get("example_value") for node in model.graph.nodes)
    return any(
        isinstance(each, torch.Tensor) and each.device.type == DEVICE for each in (*inputs, *values)
    )


def _compiled(
    wrapper: Any, model: torch.fx.GraphModule, inputs: Sequence[Any], patches: dict[str, Any]
) -> Callable[..., Any]:
    """A function with the results of a graph."""
    _connect()
    compile_fx: Any = import_module("torch._inductor.compile_fx")
    with _attention_in_graphs():
        return compile_fx.compile_fx(
            model,
            inputs,
            inner_compile=_compiled_or_eager,
            config_patches={**_settings(), **wrapper.config, **patches},
            decompositions=_decompositions(),
            compile_region_name=wrapper.name,
        )


def _compiled_or_eager(
    graph: torch.fx.GraphModule, inputs: Sequence[Any], **options: Any
) -> Callable[..., Any]:
    """The code of a graph; its operators one by one where Inductor fails, or where a kernel calls
    what the front end lacks.
    """
    from torch._functorch._aot_autograd.utils import make_boxed_func
    from torch._inductor.compile_fx import compile_fx_inner
    from torch._inductor.exc import InductorError

    report = GraphReport.of_rank()
    unchanged = torch.fx.GraphModule(graph, copy.deepcopy(graph.graph))
    try:
        code = compile_fx_inner(graph, inputs, **options)
    except InductorError as error:
        reason = str(error.inner_exception).strip().partition("\n")[0]
        report.eager[reason] += 1
        return make_boxed_func(unchanged.forward)
    report.compiled += 1
    return code


@contextmanager
def _attention_in_graphs() -> Generator[None]:
    from torch._subclasses.functional_tensor import FunctionalTensor

    from kernbench.torch_backend.inductor.graph_operators import graph_attention

    token = GRAPH_ATTENTION.set(GraphAttention(graph_attention(), FunctionalTensor))
    try:
        yield
    finally:
        GRAPH_ATTENTION.reset(token)


def _settings() -> dict[str, Any]:
    from kernbench.torch_backend.inductor.device_codegen import SimulatedChoices

    return {
        # Generated numbers are those of the eager form.
        "fallback_random": True,
        "fx_graph_cache": False,
        "combo_kernels": True,
        "combo_kernel_per_subkernel_blocks": True,
        "compile_threads": 1,
        # Blocks of two axes are boxes in memory, where flat ones would be single elements.
        "triton.prefer_nd_tiling": True,
        "inductor_choices_class": SimulatedChoices,
    }


def _decompositions() -> dict[Any, Callable[..., Any]]:
    from torch._inductor.decomposition import select_decomp_table

    return {
        operator: function
        for operator, function in select_decomp_table().items()
        if operator not in _OWN
    }


@cache
def _connect() -> None:
    try:
        from kernbench.triton.interpreter import connected

        connected()
    except ImportError as error:
        raise ImportError(_REMEDY) from error
    # Lines of generated sources in records are relative to a folder of the import path, so they are
    # the same for every user.
    sys.path.append(os.environ[_SOURCES])
    _describe_arguments()
    from torch._inductor import async_compile, config
    from torch._inductor.fx_passes import joint_graph
    from torch._inductor.runtime import triton_heuristics

    # No process may be left behind, and none is needed: nothing is compiled to machine code.
    config.compile_threads = 1
    from kernbench.torch_backend.inductor.device_codegen import register_codegen
    from kernbench.torch_backend.inductor.kernel_launches import patch_launches

    # Objects of compiled graphs are many: the process would take seconds to free them, and Triton
    # reports all that are not free at its end.
    atexit.unregister(gc.unfreeze)
    atexit.register(_end_without_report)
    replace(joint_graph, "lazy_init", _on_cpu)
    register_codegen()
    patch_launches(triton_heuristics)
    replace(async_compile.AsyncCompile, "triton", _checking)


def _describe_arguments() -> None:
    """Choose again how the source of a kernel describes its arguments: PyTorch has chosen when its
    compiler was imported, before Triton was.
    """
    triton_utils: Any = import_module("torch._inductor.codegen.triton_utils")
    spec: Any = find_spec("torch._inductor.runtime.hints")
    hints: Any = module_from_spec(spec)
    spec.loader.exec_module(hints)
    triton_utils.AttrsDescriptorWrapper = hints.AttrsDescriptorWrapper


def _checking(load: Callable[..., Any]) -> Callable[..., Any]:
    def loaded(self: Any, name: str, source: str, device_str: str = "cuda") -> Any:
        if device_str == DEVICE:
            from kernbench.torch_backend.inductor.absent_functions import check_kernel

            check_kernel(name, source)
        return load(self, name, source, device_str)

    return loaded


def _on_cpu(initialised: Callable[..., None]) -> Callable[..., None]:
    """Patterns of graphs are made of example tensors, which take no time on a CPU."""

    def call(device: object = None) -> None:
        del device
        initialised(torch.device("cpu"))

    return call


def _end_without_report() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
