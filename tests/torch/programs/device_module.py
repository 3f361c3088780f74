"""Calls of scripts on a device besides operators; a line `= name | outcome` for each case."""

import copy
import io
import os
import pickle
import re
import sys
import traceback
import weakref
from collections.abc import Callable
from functools import partial
from unittest.mock import patch

import pytest
import torch
from torch import nn
from torch.nn.attention import flex_attention
from torch.profiler import profile, record_function
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, TensorDataset

D = "ahbm"
CASES: dict[str, Callable[[], object]] = {}


def case(function):
    CASES[function.__name__] = function
    return function


def refused(error: type[Exception], text: str, call: Callable[[], object]) -> None:
    with pytest.raises(error, match=re.escape(text)):
        call()


@case
def default_device():
    assert torch.get_default_device() == torch.device("cpu")
    torch.set_default_device(D)
    made = (torch.ones(3), torch.randn(4), nn.Linear(2, 3).weight, torch.tensor([1]))
    assert {each.device for each in made} == {torch.device(D, 0)}
    assert torch.get_default_device().type == D
    torch.set_default_device(None)
    with torch.device(D):
        assert nn.Linear(2, 3).bias.is_ahbm
    assert torch.ones(1).device.type == "cpu"


@case
def parameters_with_weak_references():
    model, state = nn.Linear(4, 4).to(D), nn.Linear(4, 4).state_dict()
    weight = model.weight
    reference = weakref.ref(weight)
    model.load_state_dict(state)
    assert model.weight is weight is reference()
    assert torch.equal(weight.cpu(), state["weight"])
    assert model.cpu().weight is weight is reference()
    assert weight.device.type == "cpu"
    assert torch.equal(weight, state["weight"])


@case
def parameters_that_move_in_a_profiler_and_after_a_compiled_call():
    model, x = nn.Linear(4, 4), torch.ones(2, 4)
    compiled = torch.compile(model, backend="aot_eager")
    expected = compiled(x).detach()
    expected.sum()
    compiled(x).sum().backward()
    gradient = model.weight.grad.clone()
    with torch.profiler.profile(record_shapes=True):
        assert torch.allclose(model.to(D)(x.to(D)).cpu(), expected, rtol=1e-5)
    assert torch.equal(model.weight.grad.cpu(), gradient)
    compiled(x.to(D)).sum().backward()
    assert torch.allclose(model.weight.grad.cpu(), 2 * gradient)
    torch.compiler.reset()


@case
def storages_that_are_freed():
    x = torch.arange(6.0, device=D)
    memory = x.untyped_storage()
    memory.resize_(0)
    refused(RuntimeError, "was freed (storage.resize_(0))", lambda: x + 1)
    memory.resize_(x.nbytes)
    x.copy_(torch.arange(6.0))
    assert (x + 1).tolist() == [1, 2, 3, 4, 5, 6]
    x.set_(torch.ones(2, 3, device=D)[1:])
    assert x.tolist() == [[1, 1, 1]]
    assert x.set_().numel() == 0


@case
def flexible_attention():
    torch.manual_seed(0)
    q, k, v = (torch.randn(1, 2, 16, 8) for _ in range(3))
    own = [each.to(D).requires_grad_() for each in (q, k, v)]
    q.requires_grad_()
    mask = flex_attention.create_block_mask(
        lambda batch, head, row, column: row >= column, None, None, 16, 16, D, BLOCK_SIZE=8
    )
    expected = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    found = flex_attention.flex_attention(*own, block_mask=mask)
    assert torch.allclose(found.cpu(), expected, atol=1e-5)
    for each in (expected, found):
        each.square().sum().backward()
    assert torch.allclose(own[0].grad.cpu(), q.grad, atol=1e-5)


@case
def sparse_tensors():
    x = torch.eye(3)
    for make in (
        lambda: x.to(D).to_sparse(),
        lambda: x.to_sparse().to(D),
        lambda: x.to_sparse_csr().to(D).to_dense(),
    ):
        refused(NotImplementedError, "x.to_dense()", make)


@case
def accelerator():
    each = torch.accelerator
    assert each.is_available()
    assert each.current_accelerator() == torch.device(D)
    assert (each.device_count(), each.current_device_index()) == (1, 0)
    each.set_device_index(0)
    x = torch.ones(8, device=each.current_accelerator())
    each.synchronize()
    each.set_stream(each.current_stream())
    assert each.memory_allocated() == torch.ahbm.memory_allocated() >= x.nbytes
    assert each.max_memory_reserved() == torch.ahbm.max_memory_reserved()
    each.empty_cache()
    each.reset_peak_memory_stats()
    free, total = each.get_memory_info()
    assert 0 < free < total


@case
def conversions():
    x = torch.ones(3)
    y = x.ahbm()
    assert y.is_ahbm
    assert not x.is_ahbm
    assert x.to(device=D, dtype=torch.float16, non_blocking=True).dtype == torch.float16
    assert nn.Linear(2, 2).to("ahbm:0").weight.is_ahbm
    model = nn.Linear(2, 2).ahbm()
    assert model.weight.is_ahbm
    assert model.cpu().weight.device.type == "cpu"
    refused(RuntimeError, "this rank owns SIP 0", lambda: torch.ahbm.set_device(1))


@case
def events():
    x = torch.ones(256, 256, device=D)
    for kind in (torch.ahbm.Event, lambda **given: torch.Event(D, **given)):
        start, end = kind(enable_timing=True), kind(enable_timing=True, blocking=True)
        start.record()
        before_ns = torch.ahbm.now_ns()
        _ = x @ x
        end.record()
        end.synchronize()
        assert start.query()
        took_ns = 1e6 * start.elapsed_time(end)
        assert 0 < took_ns <= torch.ahbm.now_ns() - before_ns + 1
    refused(ValueError, "interprocess", lambda: torch.ahbm.Event(interprocess=True))


@case
def streams():
    side, other = torch.ahbm.Stream(), torch.Stream(D)
    assert torch.ahbm.current_stream() == torch.ahbm.default_stream()
    for stream in (side, other, torch.ahbm.Stream(priority=-1)):
        with torch.ahbm.stream(stream):
            assert torch.ahbm.current_stream() == stream
            assert torch.accelerator.current_stream() == stream
            x = torch.ones(64, device=D) * 2
        x.record_stream(stream)
        torch.ahbm.current_stream().wait_stream(stream)
        event = stream.record_event()
        side.wait_event(event)
        stream.synchronize()
        assert stream.query()
    with other:
        assert torch.ahbm.current_stream() == other
    assert x.sum().item() == 128


@case
def gradients_run_on_the_stream_of_their_operator():
    weight = torch.ones(64, device=D, requires_grad=True)
    seen = []

    class Noted(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            seen.append(torch.ahbm.current_stream())
            return grad

    side = torch.ahbm.Stream()
    with torch.ahbm.stream(side):
        loss = Noted.apply(weight).sum()
    loss.backward()
    assert seen == [side]
    assert weight.grad.sum().item() == 64


@case
def memory():
    device = torch.ahbm
    device.empty_cache()
    device.reset_peak_memory_stats()
    before = device.memory_allocated()
    x = torch.empty(1 << 20, device=D)
    assert device.memory_allocated(0) - before == 4 << 20
    del x
    assert device.memory_allocated(D) == before
    assert device.max_memory_allocated() == device.max_memory_reserved() == before + (4 << 20)
    assert device.memory_reserved() == before + (4 << 20)
    assert device.memory_stats()["allocated_bytes.all.peak"] == before + (4 << 20)
    free, total = device.mem_get_info()
    assert total - free == device.memory_reserved()
    device.empty_cache()
    assert device.memory_reserved() == before
    assert f"{total:,}" in device.memory_summary()
    refused(ValueError, "expected a device 'ahbm'", lambda: device.memory_allocated("cpu"))


@case
def properties():
    device = torch.ahbm
    found = device.get_device_properties(0)
    assert found.total_memory == device.mem_get_info()[1]
    assert (found.multi_processor_count, found.name) == (128, "ahbm")
    assert device.get_device_name() == "ahbm"
    assert device.is_bf16_supported()
    assert torch.get_device_module(D) is device
    assert (device.device_count(), device.current_device()) == (1, 0)
    with device.device("ahbm:0"):
        device.set_device(torch.device(D))
    refused(AttributeError, "torch.ahbm has no memory_alocated", lambda: device.memory_alocated)


@case
def seeds():
    def drawn() -> torch.Tensor:
        return torch.rand(4, device=D).cpu()

    torch.ahbm.manual_seed_all(3)
    first = drawn()
    assert torch.ahbm.initial_seed() == 3
    torch.manual_seed(3)
    assert drawn().equal(first)
    state, states = torch.ahbm.get_rng_state(), torch.ahbm.get_rng_state_all()
    second = drawn()
    torch.ahbm.set_rng_state(state)
    assert drawn().equal(second)
    torch.ahbm.set_rng_state_all(states)
    assert drawn().equal(second)
    generator = torch.Generator(D).manual_seed(3)
    assert torch.rand(4, device=D, generator=generator).cpu().equal(first)
    with torch.random.fork_rng(device_type=D):
        drawn()


@case
def save_and_load():
    model = nn.Linear(4, 4).to(D)
    expected = model.weight.detach().cpu()
    file = io.BytesIO()
    torch.save(model.state_dict(), file)
    places = {None: D, "cpu": "cpu", D: D, torch.device("ahbm:0"): D}
    for given, device in places.items():
        file.seek(0)
        weight = torch.load(file, map_location=given)["weight"]
        assert weight.device.type == device
        assert weight.cpu().equal(expected)
    assert pickle.loads(pickle.dumps(model.weight)).is_ahbm
    assert copy.deepcopy(model).weight.cpu().equal(expected)
    optimiser = torch.optim.AdamW(model.parameters())
    model(torch.ones(1, 4, device=D)).sum().backward()
    optimiser.step()
    file = io.BytesIO()
    torch.save(optimiser.state_dict(), file)
    file.seek(0)
    optimiser.load_state_dict(torch.load(file))


@case
def checkpointing():
    for reentrant in (False, True):
        model = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5), nn.Linear(4, 4)).to(D)
        x = torch.randn(3, 4, device=D, requires_grad=True)
        torch.manual_seed(1)
        model(x).sum().backward()
        expected, x.grad = x.grad.cpu(), None
        torch.manual_seed(1)
        checkpoint(model, x, use_reentrant=reentrant).sum().backward()
        assert x.grad.cpu().equal(expected)


@case
def mixed_precision():
    model = nn.Linear(4, 4).to(D)
    optimiser = torch.optim.SGD(model.parameters(), 0.1)
    scaler = torch.amp.GradScaler(D, init_scale=1024)
    with torch.autocast(D, torch.float16):
        assert torch.is_autocast_enabled(D)
        made = model(torch.ones(2, 4, device=D))
    assert made.dtype == torch.float16
    scaler.scale(made.float().sum()).backward()
    scaler.unscale_(optimiser)
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    before = model.weight.detach().cpu()
    scaler.step(optimiser)
    scaler.update()
    assert not model.weight.detach().cpu().equal(before)
    # A gradient that is not finite skips the step and halves the scale.
    before, scale = model.weight.detach().cpu(), scaler.get_scale()
    model.weight.grad = torch.full((4, 4), float("inf"), device=D)
    scaler.step(optimiser)
    scaler.update()
    assert model.weight.detach().cpu().equal(before)
    assert scaler.get_scale() == scale / 2


@case
def data_loaders():
    data = TensorDataset(torch.arange(12.0).view(6, 2))
    for options in ({}, {"pin_memory": True}, {"pin_memory": True, "num_workers": 1}):
        batches = DataLoader(data, batch_size=2, **options)
        assert sum(x.to(D, non_blocking=True).sum().item() for (x,) in batches) == 66
    assert torch.ones(3).pin_memory().ahbm().sum().item() == 3


@case
def compilation():
    def function(x: torch.Tensor) -> torch.Tensor:
        return (x * 2 + 1).relu().sum()

    x = torch.randn(16, device=D, requires_grad=True)
    function(x).backward()
    expected, x.grad = x.grad.cpu(), None
    torch.compile(function, backend="aot_eager")(x).backward()
    assert x.grad.cpu().equal(expected)
    torch.compiler.reset()
    with patch.dict(sys.modules, {"triton": None}):
        refused(Exception, "backend='aot_eager'", lambda: torch.compile(function)(x))


@case
def mixed_devices():
    x = torch.ones(2, 3, device=D)
    for call in (torch.nn.Linear(3, 2), torch.nn.LayerNorm(3), lambda x: torch.cat([x, x.cpu()])):
        refused(RuntimeError, f"at least two devices, {D}:0 and cpu!", partial(call, x))


@case
def moved_modules():
    model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Linear(3, 3))
    model[1].weight = model[0].weight
    optimizer = torch.optim.SGD(model.parameters())
    model.to(D)
    assert model[1].weight is model[0].weight
    assert all(each.is_ahbm for group in optimizer.param_groups for each in group["params"])


@case
def profiles():
    with profile() as found, record_function("a range"):
        _ = torch.ones(64, 64, device=D) @ torch.ones(64, 64, device=D)
    names = {each.key for each in found.key_averages()}
    assert {"a range", "aten::mm"} <= names


for name in os.environ.get("CASES", ",".join(CASES)).split(","):
    try:
        CASES[name]()
    except Exception as error:  # noqa: BLE001 - the other cases run as well
        traceback.print_exc()
        print(f"= {name} | {type(error).__name__}", flush=True)
    else:
        print(f"= {name} | ok", flush=True)
    finally:
        torch.set_default_device(None)
