"""Uses of the device `ahbm` where there is none; a line `= name | outcome` for each case."""

import io

import torch
from torch import nn

saved = io.BytesIO()
torch.save(torch.ones(3), saved)


def load(**options):
    saved.seek(0)
    return torch.load(saved, **options)


CASES = {
    "torch.empty": lambda: torch.empty(2, device="ahbm"),
    "torch.randn": lambda: torch.randn(2, device="ahbm:0"),
    "torch.tensor": lambda: torch.tensor([1.0], device="ahbm"),
    "to": lambda: torch.ones(2).to("ahbm"),
    "x.ahbm": lambda: torch.ones(2).ahbm(),
    "new_zeros": lambda: torch.ones(2).new_zeros(3, device="ahbm"),
    "module to": lambda: nn.Linear(2, 2).to("ahbm"),
    "module.ahbm": lambda: nn.Linear(2, 2).ahbm(),
    "module on the device": lambda: nn.Linear(2, 2, device="ahbm"),
    "storage": lambda: torch.UntypedStorage(10, device="ahbm"),
    "torch.load": lambda: load(map_location="ahbm"),
    "torch.load of objects": lambda: load(map_location="ahbm:0", weights_only=False),
    "pin_memory": lambda: torch.ones(2).pin_memory(),
    "autocast": lambda: torch.autocast("ahbm", torch.bfloat16),
    "torch.ahbm.Event": lambda: torch.ahbm.Event(enable_timing=True),
    "torch.ahbm.memory_allocated": lambda: torch.ahbm.memory_allocated(0),
    "torch.Stream": lambda: torch.Stream(device="ahbm"),
    "torch.Stream of its number": lambda: torch.Stream(stream_id=0, device_index=0, device_type=20),
    "torch.Stream without a device": torch.Stream,
    "torch.Event": lambda: torch.Event("ahbm", enable_timing=True),
    "torch.Generator": lambda: torch.Generator("ahbm"),
    "GradScaler": lambda: torch.amp.GradScaler("ahbm"),
    "torch.accelerator.synchronize": torch.accelerator.synchronize,
    "torch.accelerator.memory_allocated": torch.accelerator.memory_allocated,
    "an error of C++": lambda: torch.ones(2) + torch.ones(3),
    "an error of C++, deeper": lambda: nn.Sequential(nn.Linear(3, 3))(torch.ones(2, 2)),
}

assert not torch.ahbm.is_available()
assert not torch.accelerator.is_available()
assert torch.ahbm.device_count() == 0
torch.manual_seed(1)
assert isinstance(torch.Generator().manual_seed(1), torch.Generator)
assert isinstance(torch.default_generator, torch.Generator)
assert not torch.amp.GradScaler("ahbm", enabled=False).is_enabled()
assert torch.amp.GradScaler("cpu").is_enabled()
for name, case in CASES.items():
    try:
        outcome = f"made {case()}"
    except Exception as error:  # noqa: BLE001 - any error is the outcome
        outcome = f"{type(error).__name__}: {error}"
    print(f"= {name} | {outcome}", flush=True)
