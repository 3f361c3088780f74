"""Trains a model of examples/torch for five steps, eager or compiled: `compiled_examples.py gpt
compiled`. A line has the loss of a step, the launches and the time of its forward and backward, and
those of the optimiser, which is compiled too.
"""

import sys
from collections.abc import Callable
from pathlib import Path

import torch
import torch.nn.functional as F  # noqa: N812 - the usual name
from torch import Tensor

from runtime.device.rank.rank_state import running_rank

sys.path.insert(0, str(Path(__file__).parents[3] / "examples" / "torch"))
import gpt
import llama

NAME, FORM = sys.argv[1:3]
STEPS = int(sys.argv[3]) if len(sys.argv) > 3 else 5
D = "ahbm"
EXAMPLE = {"gpt": gpt, "llama": llama}[NAME]
torch.manual_seed(0)
model = (gpt.Gpt if NAME == "gpt" else llama.Llama)().to(D)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, foreach=True)


def loss_of(text: torch.Tensor) -> torch.Tensor:
    logits = model(text[:, :-1])
    return F.cross_entropy(logits.flatten(0, 1), text[:, 1:].flatten())


def update() -> None:
    optimizer.step()


def measured(part: Callable[[], Tensor | None]) -> tuple[Tensor | None, int, float]:
    torch.ahbm.synchronize()
    before, begin_ns = running_rank().launches, torch.ahbm.now_ns()
    result = part()
    torch.ahbm.synchronize()
    return result, running_rank().launches - before, torch.ahbm.now_ns() - begin_ns


if FORM == "compiled":
    loss_of, update = torch.compile(loss_of), torch.compile(update)
source = torch.Generator().manual_seed(0)
for number in range(STEPS):
    text = torch.randint(0, EXAMPLE.VOCABULARY, (2, EXAMPLE.CONTEXT + 1), generator=source).to(D)
    optimizer.zero_grad()

    def gradients(text: Tensor = text) -> Tensor:
        loss = loss_of(text)
        loss.backward()
        return loss

    loss, launches, time_ns = measured(gradients)
    _, updates, update_ns = measured(update)
    print(
        f"= {number} {loss.item():.7f} {launches} {time_ns:.3f} {updates} {update_ns:.3f}",
        flush=True,
    )
