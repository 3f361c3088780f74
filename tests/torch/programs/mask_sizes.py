"""Elements that are written by a mask of another size: prints the errors."""

import torch

x = torch.zeros(2, 3, device="ahbm")
mask = torch.tensor([[True, False, True], [False, True, False]], device="ahbm")
for count in (2, 4):
    try:
        x[mask] = torch.ones(count, device="ahbm")
    except RuntimeError as error:
        print(error)
