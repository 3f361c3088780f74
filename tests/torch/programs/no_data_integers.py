"""A random program on integers, for a seed; prints the elements of its tensors, or that they are
not known.
"""

import random
import sys
from collections.abc import Callable

import torch
from torch import Tensor

from kernbench.torch_backend.runtime.known_integers import NoDataError

DRAW = random.Random(int(sys.argv[1]))
STEPS = 150
TYPES = (torch.int64, torch.int32, torch.uint8, torch.bool, torch.int16)
FLOATS = torch.arange(24.0).view(4, 6).to("ahbm").sin()
"""Numbers of floating point, on which what depends is not known."""


def fresh() -> Tensor:
    made = torch.tensor([DRAW.randrange(6) for _ in range(24)]).view(4, 6)
    return made.to(DRAW.choice(TYPES)).to("ahbm")


def rows() -> Tensor:
    return torch.tensor([DRAW.randrange(4) for _ in range(4)]).to("ahbm")


def part(x: Tensor) -> Tensor:
    """A window of a tensor: all of it, rows, columns, or it turned twice."""
    first, last = sorted((DRAW.randrange(5), DRAW.randrange(5)))
    return DRAW.choice((x, x[first:last], x[:, first:last], x[::2], x.t()[first:last].t()))


def written(x: Tensor, source: Tensor) -> Tensor:
    """A tensor, of which a part is written in place."""
    target = part(x)
    target.copy_(source[: target.shape[0], : target.shape[1]])
    return x


def added(x: Tensor) -> Tensor:
    target = part(x)
    if x.dtype == torch.bool:
        return x.logical_not_()
    target += DRAW.randrange(4)
    return x


def resized(x: Tensor) -> Tensor:
    return torch.cat([x.flatten().clone(), x.flatten()[:4]])[:24].clone().view(4, 6)


def moved(x: Tensor) -> Tensor:
    x[1:] = x[:-1]
    return x


STEP: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "add": lambda x, y: x + y,
    "mul": lambda x, y: x.long() * y,
    "less": lambda x, y: x < y,
    "where": lambda x, y: torch.where(x > 2, y, x),
    "cat": lambda x, y: torch.cat([x[:2], y[2:]]),
    "stack": lambda x, y: torch.stack([x, y]).amax(0),
    "remainder": lambda x, y: x.long() % (y.long().abs() + 1),
    "shift": lambda x, y: (x.int() & 3) | (y.int() & 8),
    "written": written,
    "added": lambda x, _: added(x),
    "moved": lambda x, _: moved(x),
    "resized": lambda x, _: resized(x),
    "cumsum": lambda x, _: x.cumsum(1) % 9,
    "sum": lambda x, y: x.sum(0, keepdim=True) % 9 + y * 0,
    "sort": lambda x, _: x.int().sort(1)[1],
    "flip": lambda x, _: x.flip(0, 1),
    "rows": lambda x, _: x[rows()],
    "gather": lambda x, y: x.gather(1, y.long() % 6),
    "scatter": lambda x, y: x.int().scatter(1, y.long() % 6, 7),
    "put": lambda x, _: x.clone().index_put_((rows(), rows()), x[0, 0]),
    "index_copy": lambda x, y: x.clone().index_copy_(0, torch.arange(4, device="ahbm"), y.to(x)),
    "masked": lambda x, y: x.masked_fill(y > 3, 1),
    "zeros": lambda x, _: torch.zeros_like(x, dtype=torch.int64),
    "full": lambda x, _: torch.full_like(x, 1),
    "roll": lambda x, _: x.roll(1, 1),
    "type": lambda x, _: x.to(DRAW.choice(TYPES)),
    "turned": lambda x, _: x.t().contiguous().t(),
    "fresh": lambda _, __: fresh(),
    "drawn": lambda x, _: torch.empty_like(x, dtype=torch.int64).random_(0, 5),
    "ordered": lambda x, _: torch.randperm(24, device="ahbm").view(4, 6),
    "compared": lambda x, _: x.float() < FLOATS,
    "argmax": lambda x, _: x.long() * 0 + FLOATS.argmax(1, keepdim=True),
    "overwritten": lambda x, _: written(x.clone(), (FLOATS > 0).to(x.dtype)),
    "out": lambda x, y: torch.gt(FLOATS, 0.5, out=(x + y) > 2),
}


def main() -> None:
    tensors = [fresh() for _ in range(4)]
    for step in range(STEPS):
        # New ones more often: what is not known spreads.
        name = DRAW.choice([*sorted(STEP), *["fresh"] * 8])
        first, second, place = (DRAW.randrange(4) for _ in range(3))
        try:
            result = STEP[name](tensors[first], tensors[second])
        except NoDataError:
            result = FLOATS > 0
        except (RuntimeError, NotImplementedError):
            result = torch.zeros(4, 6, dtype=torch.int64, device="ahbm")
        # A step that ends early has made other draws.
        DRAW.seed(f"{sys.argv[1]} {step}")
        tensors[place] = result
        for number, each in enumerate(tensors):
            try:
                elements = each.long().tolist()
            except NoDataError:
                elements = "not known"
            print("=", step, name, number, elements, flush=True)


main()
