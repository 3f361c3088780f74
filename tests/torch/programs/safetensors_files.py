"""Files of safetensors and tensors of a device, by default "ahbm", against tensors of a CPU:
safetensors_files.py [DEVICE]. A rank prints which of its cases are right.
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

# First, so that the import of PyTorch is one of its own.
import safetensors.torch
import torch
from safetensors import safe_open
from torch import Tensor, nn

RANK = torch.accelerator.current_device_index()
DEVICE = sys.argv[1] if len(sys.argv) > 1 else "ahbm"
TENSORS = {
    "floats": torch.arange(12.0).view(3, 4),
    "integers": torch.arange(6),
    "halves": torch.arange(5.0).bfloat16(),
    "bools": torch.tensor([True, False]),
}


def are_same(tensors: dict[str, Tensor]) -> bool:
    return all(
        tensors[name].device == torch.device(DEVICE, RANK)
        and torch.equal(tensors[name].cpu(), each)
        for name, each in TENSORS.items()
    )


def opened(file: Path) -> bool:
    with safe_open(file, "pt", device=DEVICE) as tensors:
        part = tensors.get_slice("floats")[1:, :2]
        return torch.equal(part.cpu(), TENSORS["floats"][1:, :2]) and are_same(
            {name: tensors.get_tensor(name) for name in tensors.keys()}  # noqa: SIM118 - no mapping
        )


def of_a_model(file: Path) -> bool:
    model, other = (nn.Linear(3, 2).to(DEVICE) for _ in range(2))
    safetensors.torch.save_model(model, str(file))
    safetensors.torch.load_model(other, file, device=DEVICE)
    return torch.equal(model.weight, other.weight)


def main(folder: Path) -> None:
    file = folder / "tensors"
    safetensors.torch.save_file(TENSORS, file)
    loaded = safetensors.torch.load_file(file, device=DEVICE)
    cases = [
        are_same(loaded),
        are_same(safetensors.torch.load_file(file, device=f"{DEVICE}:{RANK}")),
        are_same(safetensors.torch.load_file(file, device=torch.device(DEVICE))),
        opened(file),
    ]
    safetensors.torch.save_file(loaded, folder / "own")
    cases += [(folder / "own").read_bytes() == file.read_bytes(), of_a_model(folder / "model")]
    print(f"= rank {RANK}: {[number for number, is_right in enumerate(cases) if is_right]}")


with TemporaryDirectory() as made:
    main(Path(made))
