"""Trains a model of examples/torch for five steps, eager or compiled, and prints its losses, its
launches, and the bytes that its kernels move in a step: `compiled_examples.py gpt compiled`.
"""

import sys
from pathlib import Path

import torch
import torch.nn.functional as F  # noqa: N812 - the usual name

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


call = torch.compile(loss_of) if FORM == "compiled" else loss_of
source = torch.Generator().manual_seed(0)
for step in range(STEPS):
    text = torch.randint(0, EXAMPLE.VOCABULARY, (2, EXAMPLE.CONTEXT + 1), generator=source).to(D)
    optimizer.zero_grad()
    torch.ahbm.synchronize()
    before, begin_ns = running_rank().launches, torch.ahbm.now_ns()
    loss = call(text)
    loss.backward()
    torch.ahbm.synchronize()
    launches, time_ns = running_rank().launches - before, torch.ahbm.now_ns() - begin_ns
    optimizer.step()
    print(f"= {step} {loss.item():.7f} {launches} {time_ns:.3f}", flush=True)
