"""Pieces of training scripts: precision, optimisers, schedules, checkpoints, transforms."""

import copy
import io
from itertools import pairwise

import torch
import torch.nn.functional as F  # noqa: N812 - PyTorch's convention
from features import feature, gradients, numbers, parameters, random
from torch import nn
from torch.optim import lr_scheduler, swa_utils
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, TensorDataset

THEME = "Training"


def perceptron(device, width: int = 16):
    layers = [nn.Linear(width, 2 * width), nn.ReLU(), nn.Linear(2 * width, width)]
    return nn.Sequential(*layers).to(device)


def trained(device, make_optimizer, steps: int = 3):
    """The parameters after some steps."""
    model = perceptron(device)
    optimizer = make_optimizer(model)
    x = random(8, 16).to(device)
    for _ in range(steps):
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()
    return parameters(model)


@feature(THEME, "Shared weights, and an optimiser made before the model moves")
def moved(device):
    model = nn.Sequential(nn.Linear(16, 16), nn.Linear(16, 16), nn.Linear(16, 16))
    model[2].weight = model[0].weight
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model.to(device)
    model(random(8, 16).to(device)).square().mean().backward()
    optimizer.step()
    assert model[2].weight is model[0].weight
    return parameters(model)


@feature(THEME, "Mixed precision: autocast to bfloat16")
def autocast(device):
    model = perceptron(device)
    with torch.autocast(device, dtype=torch.bfloat16):
        y = model(random(8, 16).to(device))
        loss = F.mse_loss(y.float(), torch.zeros(8, 16, device=device))
    loss.backward()
    return [y.detach(), *gradients(model)]


@feature(THEME, "Mixed precision: float16 with GradScaler and clipping")
def scaled_gradients(device):
    model = perceptron(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler(device, init_scale=2.0**8)
    x = random(8, 16).to(device)
    for _ in range(2):
        optimizer.zero_grad()
        with torch.autocast(device, dtype=torch.float16):
            loss = model(x).float().square().mean()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        scaler.step(optimizer)
        scaler.update()
    return [*(each.half() for each in parameters(model)), torch.tensor(scaler.get_scale())]


@feature(THEME, "Whole model in bfloat16")
def narrow_model(device):
    model = perceptron(device).to(torch.bfloat16)
    y = model(random(8, 16).to(device, torch.bfloat16))
    y.square().mean().backward()
    return [y.detach(), *gradients(model)]


@feature(THEME, "Clipping of gradients by norm and by value")
def clipping(device):
    model = perceptron(device)
    model(random(8, 16).to(device)).square().sum().backward()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    torch.nn.utils.clip_grad_value_(model.parameters(), 0.01)
    return [norm, *gradients(model)]


@feature(THEME, "Accumulation of gradients")
def accumulation(device):
    model = perceptron(device)
    for part in random(8, 16).to(device).chunk(4):
        (model(part).square().mean() / 4).backward()
    return gradients(model)


@feature(THEME, "Activation checkpointing, with dropout")
def recomputed(device):
    model = nn.Sequential(*perceptron(device), nn.Dropout(0.3))
    torch.manual_seed(1)
    y = checkpoint(model, random(8, 16).to(device).requires_grad_(), use_reentrant=False)
    y.square().sum().backward()
    return [y.detach(), *gradients(model)]


@feature(THEME, "Moving average of weights (AveragedModel)")
def averaged(device):
    model = perceptron(device)
    average = swa_utils.AveragedModel(model, multi_avg_fn=swa_utils.get_ema_multi_avg_fn(0.9))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        model(random(8, 16).to(device)).square().mean().backward()
        optimizer.step()
        average.update_parameters(model)
    return parameters(average)


@feature(THEME, "SGD with momentum (Nesterov) and weight decay")
def momentum(device):
    return trained(
        device,
        lambda model: torch.optim.SGD(
            model.parameters(), lr=0.1, momentum=0.9, nesterov=True, weight_decay=1e-3
        ),
    )


@feature(THEME, "AdamW, a loop over parameters (foreach=False)")
def looping(device):
    return trained(device, lambda model: torch.optim.AdamW(model.parameters(), foreach=False))


@feature(THEME, "AdamW, lists of tensors (foreach=True)")
def lists(device):
    return trained(device, lambda model: torch.optim.AdamW(model.parameters(), foreach=True))


@feature(THEME, "AdamW, fused")
def fused(device):
    return trained(device, lambda model: torch.optim.AdamW(model.parameters(), fused=True))


@feature(THEME, "Adam with AMSGrad")
def amsgrad(device):
    return trained(device, lambda model: torch.optim.Adam(model.parameters(), amsgrad=True))


@feature(THEME, "Adafactor")
def adafactor(device):
    return trained(device, lambda model: torch.optim.Adafactor(model.parameters(), lr=1e-2))


@feature(THEME, "RMSprop, Adagrad, NAdam, RAdam")
def others(device):
    kinds = (torch.optim.RMSprop, torch.optim.Adagrad, torch.optim.NAdam, torch.optim.RAdam)
    return [
        each
        for kind in kinds
        for each in trained(device, lambda model, kind=kind: kind(model.parameters(), lr=1e-2))
    ]


@feature(THEME, "L-BFGS")
def quasi_newton(device):
    model, x = perceptron(device), random(8, 16).to(device)
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=3)

    def closure():
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        return loss

    optimizer.step(closure)
    return [closure().detach()]


@feature(THEME, "An optimiser of matrix products (Muon, Newton-Schulz)")
def orthogonal_steps(device):
    weight = nn.Parameter(random(16, 32).to(device))
    x = random(8, 32, seed=2).to(device)
    for _ in range(2):
        weight.grad = None
        F.linear(x, weight).square().mean().backward()
        with torch.no_grad():
            step = weight.grad / (weight.grad.norm() + 1e-7)
            for _ in range(3):
                gram = step @ step.mT
                step = 3.4445 * step + (-4.775 * gram + 2.0315 * gram @ gram) @ step
            weight.add_(step, alpha=-0.02)
    return [weight.detach()]


@feature(THEME, "Schedules of the learning rate: warm-up, cosine, one cycle, plateau")
def schedules(device):
    model, x = perceptron(device), random(8, 16).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    warm_up = lr_scheduler.LinearLR(optimizer, 0.1, total_iters=2)
    cosine = lr_scheduler.CosineAnnealingLR(optimizer, 4)
    both = lr_scheduler.SequentialLR(optimizer, [warm_up, cosine], [2])
    plateau = lr_scheduler.ReduceLROnPlateau(optimizer, patience=0)
    cycle = lr_scheduler.OneCycleLR(torch.optim.Adam(model.parameters()), 0.1, total_steps=9)
    rates = []
    for _ in range(4):
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        both.step()
        plateau.step(loss)
        rates.append(optimizer.param_groups[0]["lr"])
    return [torch.tensor([*rates, *cycle.get_last_lr()]), *parameters(model)]


@feature(THEME, "Checkpoints of model and optimiser (torch.save, torch.load)")
def checkpoints(device):
    def step(model, optimizer):
        optimizer.zero_grad()
        model(random(8, 16).to(device)).square().mean().backward()
        optimizer.step()

    model = perceptron(device)
    optimizer = torch.optim.AdamW(model.parameters())
    step(model, optimizer)
    file = io.BytesIO()
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, file)
    file.seek(0)
    state = torch.load(file, map_location=device, weights_only=True)
    again = perceptron(device)
    restored = torch.optim.AdamW(again.parameters())
    again.load_state_dict(state["model"])
    restored.load_state_dict(state["optimizer"])
    step(again, restored)
    return [*parameters(again), *parameters(copy.deepcopy(model))]


@feature(THEME, "DataLoader with shuffling")
def loading(device):
    data = TensorDataset(random(12, 16), numbers(16, 12))
    source = torch.Generator().manual_seed(2)
    model, losses = perceptron(device), []
    for x, y in DataLoader(data, batch_size=4, shuffle=True, generator=source, pin_memory=False):
        found = model(x.to(device, non_blocking=True))
        losses.append(F.cross_entropy(found, y.to(device, non_blocking=True)).detach())
    return losses


@feature(THEME, "torch.profiler with record_function")
def profiled(device):
    model = perceptron(device)
    with torch.profiler.profile() as found, torch.profiler.record_function("a step"):
        y = model(random(8, 16).to(device))
    assert any(each.key == "a step" for each in found.key_averages())
    return [y.detach()]


@feature(THEME, 'torch.compile(backend="aot_eager")')
def compiled(device):
    model = perceptron(device)
    y = torch.compile(model, backend="aot_eager")(random(8, 16).to(device))
    y.square().mean().backward()
    return [y.detach(), *gradients(model)]


@feature(THEME, "torch.func: gradients of each sample (grad, vmap, functional_call)")
def each_sample(device):
    model, x = perceptron(device), random(4, 16).to(device)
    state = {name: each.detach() for name, each in model.named_parameters()}

    def loss(state, row):
        return torch.func.functional_call(model, state, (row[None],)).square().mean()

    found = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0))(state, x)
    return list(found.values())


@feature(THEME, "Second derivatives: penalty of gradients, Jacobian, product with the Hessian")
def second_derivatives(device):
    model, x = perceptron(device), random(4, 16).to(device).requires_grad_()
    (slope,) = torch.autograd.grad(model(x).sigmoid().sum(), x, create_graph=True)
    (slope.norm(dim=1) - 1).square().mean().backward()
    point = random(5).to(device)
    jacobian = torch.func.jacrev(lambda v: (v**3).sum() * v)(point)
    _, product = torch.func.jvp(torch.func.grad(lambda v: (v**3).sum()), (point,), (point,))
    return [*gradients(model), jacobian, product]


@feature(THEME, "Own autograd functions, and hooks of modules and of tensors")
def own_functions(device):
    class Rounded(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.round()

        @staticmethod
        def backward(ctx, grad):
            return grad

    seen = []
    model = perceptron(device)
    model[0].register_forward_hook(lambda module, inputs, output: seen.append(output.detach()))
    model[2].register_full_backward_hook(lambda module, given, found: seen.append(found[0]))
    y = Rounded.apply(model(random(8, 16).to(device)))
    y.register_hook(lambda grad: grad * 2)
    y.square().sum().backward()
    return [y.detach(), *seen, *gradients(model)]


@feature(THEME, "Initialisation (torch.nn.init), weight normalisation")
def initialised(device):
    model = perceptron(device)
    normal = nn.utils.parametrizations.weight_norm(nn.Linear(16, 8)).to(device)
    torch.manual_seed(3)
    for layer in model[::2]:
        nn.init.xavier_uniform_(layer.weight)
        nn.init.trunc_normal_(layer.bias, std=0.02)
    y = normal(model(random(8, 16).to(device)))
    y.sum().backward()
    return [y.detach(), *gradients(normal)]


@feature(THEME, "Streams and events of the device")
def streams(device):
    x = random(32, 32).to(device)
    if device == "cpu":
        return [x @ x, x + 1]
    module = torch.get_device_module(device)
    side = module.Stream()
    began, ended = (module.Event(enable_timing=True) for _ in range(2))
    began.record()
    side.wait_stream(module.current_stream())
    with module.stream(side):
        y = x @ x
    z = x + 1
    module.current_stream().wait_stream(side)
    ended.record()
    module.synchronize()
    assert began.elapsed_time(ended) > 0
    assert module.memory_allocated() > 0
    return [y, z]


@feature(THEME, "Memory: set_default_device, pinned memory, out=, views, in-place operators")
def memory(device):
    before = torch.get_default_device()
    torch.set_default_device(device)
    try:
        x = torch.arange(24.0).view(4, 6)
        out = torch.empty(4, 6)
    finally:
        torch.set_default_device(before)
    torch.add(x, 1, out=out)
    out[1:3, ::2].mul_(2)
    out.t()[0] = 7.0
    parts = [end - start for start, end in pairwise(out[0].tolist())]
    return [out, torch.tensor(parts), torch.as_strided(out, (3, 3), (6, 2), 1).contiguous()]
