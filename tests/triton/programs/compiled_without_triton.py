"""A compiled function where Triton is not installed."""

import sys

sys.modules["triton"] = None

import torch  # noqa: E402 - after Triton is hidden

x = torch.ones(4).to("ahbm")
try:
    torch.compile(lambda x: x * 2)(x)
except Exception as error:  # noqa: BLE001 - the class is TorchDynamo's
    print("= error", str(error).replace("\n", " "), flush=True)
print("= aot_eager", torch.compile(lambda x: x * 3, backend="aot_eager")(x).tolist(), flush=True)
