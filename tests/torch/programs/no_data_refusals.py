"""Uses of elements that a run without data has not: a line for each, with the error."""

import io
from collections.abc import Callable

import torch
import torch.distributed as dist
import torch.nn.functional as F  # noqa: N812 - PyTorch's convention

dist.init_process_group("ahbm")
x = torch.arange(80.0).view(10, 8).to("ahbm")
best = x[:8].argmax(1)


def scaled() -> None:
    weight = torch.ones(4, device="ahbm", requires_grad=True)
    optimizer, scaler = torch.optim.SGD([weight]), torch.amp.GradScaler("ahbm")
    scaler.scale(weight.sum()).backward()
    scaler.step(optimizer)


def clipped() -> None:
    weight = torch.ones(4, device="ahbm", requires_grad=True)
    weight.sum().backward()
    torch.nn.utils.clip_grad_norm_([weight], 1.0, error_if_nonfinite=True)


def gathered() -> None:
    objects = [torch.empty(3) for _ in range(dist.get_world_size())]
    dist.all_gather(objects, torch.ones(3))


def freed() -> None:
    known = torch.arange(10, device="ahbm")
    assert known.tolist() == list(range(10))
    pointer = known.data_ptr()
    del known
    unwritten = torch.empty(10, dtype=torch.int64, device="ahbm")
    assert unwritten.data_ptr() == pointer
    unwritten.tolist()


CASES: dict[str, Callable[[], object]] = {
    "item": lambda: x.sum().item(),
    "float": lambda: float(x[0, 0]),
    "bool": lambda: bool((x > 1).all()),
    "if": lambda: 1 if x.sum() > 0 else 2,
    "tolist": x.tolist,
    "cpu": x.cpu,
    "to": lambda: x[:, ::3].to("cpu", torch.float64),
    "numpy": lambda: x.numpy(force=True),
    "repr": lambda: repr(x),
    "save": lambda: torch.save({"x": x}, io.BytesIO()),
    "integers": best.tolist,
    "svd": lambda: torch.linalg.svd(x),
    "nonzero": (x > 3).nonzero,
    "mask": lambda: x[x > 3],
    "equal": lambda: torch.equal(x, x),
    "topk": lambda: x.topk(2),
    "max": lambda: x.max(1),
    "multinomial": lambda: x.multinomial(2),
    "rows": lambda: x[best],
    "embedding": lambda: F.embedding(best, x),
    "bag": lambda: F.embedding_bag(best, x, torch.tensor([0], device="ahbm")),
    "gather": lambda: x.gather(1, best.unsqueeze(0)),
    "put": lambda: x.index_put((best,), x[:8]),
    "cross_entropy": lambda: F.cross_entropy(x[:8], best),
    "bincount": best.bincount,
    "overwritten": lambda: F.embedding(torch.zeros_like(best).copy_(best), x),
    "of bits": lambda: F.embedding(torch.zeros_like(x).view(torch.int32)[0], x),
    "freed": freed,
    "scaler": scaled,
    "clipped": clipped,
    "collective": gathered,
}

for name, case in CASES.items():
    try:
        case()
    except RuntimeError as error:
        print("=", name, "|", type(error).__name__, "|", error, flush=True)
    else:
        print("=", name, "|", "nothing", flush=True)
