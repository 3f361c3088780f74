"""A published script, unchanged, with what it computes: published.py STEPS SCRIPT [ARGUMENT ...].

Prints the losses of all backward passes of a rank and, of each optimiser, the norm of the rank's
weights; ends the script after a number of steps of its optimisers, or with 0 at its own end.
BACKEND=gloo runs it on a CPU.

The script has the same random numbers on both: on a CPU models and data draw from one generator,
here those of the host and those of the device from one each. So all generators are set whenever a
module moves and whenever a model is called.
"""

import os
import runpy
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributed.tensor import DTensor
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.optim.optimizer import Optimizer, register_optimizer_step_post_hook

IS_ON_CPU = os.environ.get("BACKEND") == "gloo"
if IS_ON_CPU:
    import cpu_accelerators

    cpu_accelerators.stand_in()
RANK = int(os.environ["RANK"])


class Seeds:
    """Sets the generators to a number for each rank and call."""

    def __init__(self) -> None:
        self._calls = self._depth = 0

    def watch(self) -> None:
        """Set them when a module moves, and before the calls of models, not of their layers."""
        self.set()
        register_module_forward_pre_hook(self._enter)
        register_module_forward_hook(self._leave, always_call=True)
        nn.Module.to = self._moving(nn.Module.to)

    def set(self) -> None:
        torch.manual_seed(1000 * self._calls + RANK)
        self._calls += 1

    def _moving(self, move: Callable[..., nn.Module]) -> Callable[..., nn.Module]:
        def moved(module: nn.Module, *given: Any, **options: Any) -> nn.Module:
            module = move(module, *given, **options)
            self.set()
            return module

        return moved

    def _enter(self, _: nn.Module, __: object) -> None:
        if not self._depth:
            self.set()
        self._depth += 1

    def _leave(self, _: nn.Module, __: object, ___: object) -> None:
        self._depth -= 1


class Record:
    """The losses, and the optimisers that have made a step."""

    def __init__(self, most_steps: int) -> None:
        self._most_steps, self._steps = most_steps, 0
        self._last: Tensor | None = None
        self._losses: list[Tensor] = []
        self._optimizers: dict[int, Optimizer] = {}

    def watch(self) -> None:
        backward = Tensor.backward

        def recorded(loss: Tensor, *given: Any, **options: Any) -> None:
            # A mode of `--as-cuda` calls the method again.
            if loss is not self._last:
                self._losses.append(_local(loss))
            self._last = loss
            backward(loss, *given, **options)

        Tensor.backward = recorded
        register_optimizer_step_post_hook(self._step)

    def _step(self, optimizer: Optimizer, _: object, __: object) -> None:
        self._optimizers.setdefault(id(optimizer), optimizer)
        self._steps += 1
        if self._steps == self._most_steps:
            sys.exit()

    def show(self) -> None:
        losses = " ".join(f"{each.item():.9g}" for each in self._losses)
        norms = " ".join(f"{_norm(each):.9g}" for each in self._optimizers.values())
        print(f"= {RANK} | {losses} | {norms}", flush=True)


def _local(tensor: Tensor) -> Tensor:
    tensor = tensor.detach()
    return tensor.to_local() if isinstance(tensor, DTensor) else tensor


def _norm(optimizer: Optimizer) -> float:
    weights = [_local(each) for group in optimizer.param_groups for each in group["params"]]
    return sum(each.cpu().double().square().sum().item() for each in weights) ** 0.5


def main(most_steps: int, script: Path, arguments: list[str]) -> None:
    record = Record(most_steps)
    record.watch()
    Seeds().watch()
    sys.argv = [str(script), *arguments]
    sys.path.insert(0, str(script.parent))
    try:
        runpy.run_path(str(script), run_name="__main__")
    except SystemExit as end:
        if end.code:
            raise
    record.show()


main(int(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])
