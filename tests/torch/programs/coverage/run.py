"""Runs the features of a theme, as a script for torchrun; saves an outcome for each rank.

BACKEND=gloo torchrun --nproc-per-node 2 run.py THEME FOLDER
python launch.py --sips 2 run.py THEME FOLDER
"""

import os
import sys
import traceback
from pathlib import Path

import distributed
import language_models
import other_models
import torch
import torch.distributed as dist
import training
from features import FEATURES, Feature

BACKEND = os.environ.get("BACKEND", "ahbm")
DEVICE = "cpu" if BACKEND == "gloo" else BACKEND
MODULES = (distributed, language_models, other_models, training)


def results_of(function: Feature) -> list[torch.Tensor] | str:
    """The results on the host, or the error."""
    torch.manual_seed(0)
    try:
        results = function(DEVICE)
        # A copy of what is on its way: of an asynchronous collective, its elements.
        return [each.detach().cpu().clone() for each in results]
    except Exception as error:  # noqa: BLE001 - the outcome of the feature
        traceback.print_exc()
        return f"{type(error).__name__}: {' '.join(str(error).split())}"


def outcome_of(function: Feature) -> dict[str, object]:
    """Results, operators on the host by name, and its share of the simulated time."""
    if DEVICE == "cpu":
        return {"results": results_of(function)}
    from kernbench.torch_backend.aten.operators import FALLBACKS, UNPORTABLE

    FALLBACKS.clear()
    UNPORTABLE.clear()
    device = torch.get_device_module(DEVICE)
    before_ns, host_ns = device.now_ns(), device.host_fallback_ns()
    results = results_of(function)
    device.synchronize()
    elapsed_ns = max(device.now_ns() - before_ns, 1)
    share = (device.host_fallback_ns() - host_ns) / elapsed_ns
    return {
        "results": results,
        "fallbacks": sorted(FALLBACKS),
        "unportable": sorted(UNPORTABLE),
        "host_share": share,
    }


def saved(folder: Path, theme: str) -> dict[str, object]:
    """The outcomes of this rank from an earlier run, of which all ranks have saved theirs."""
    path = folder / f"{BACKEND} {theme} {dist.get_rank()}"
    outcomes = torch.load(path) if path.exists() else {}
    dist.barrier()
    return outcomes


def main(theme: str, folder: Path, names: list[str]) -> None:
    """All features of a theme, or those whose names begin with one of `names`.

    The first rank prints a line `= NAME | saved` when all ranks have saved their outcomes.
    """
    dist.init_process_group(BACKEND)
    outcomes = saved(folder, theme)
    path = folder / f"{BACKEND} {theme} {dist.get_rank()}"
    for name, function in FEATURES[theme].items():
        if names and not name.startswith(tuple(names)):
            continue
        outcomes[name] = outcome_of(function)
        torch.save(outcomes, path.with_suffix(".unfinished"))
        path.with_suffix(".unfinished").replace(path)
        dist.barrier()
        if dist.get_rank() == 0:
            print(f"= {name} | saved", flush=True)
    dist.destroy_process_group()


main(sys.argv[1], Path(sys.argv[2]), sys.argv[3:])
