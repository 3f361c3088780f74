"""Operators on rows of several blocks on each PE; prints the largest error of each beside a CPU."""

import sys
from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F  # noqa: N812 - PyTorch's convention

ROWS, COLUMNS = 2050, 772
"""Sizes that do not divide: each PE has a part of a row, and its last block is shorter."""
DRAWN = torch.Generator().manual_seed(0)


def drawn(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(shape, generator=DRAWN).to(dtype)


def with_gradients(
    function: Callable[..., torch.Tensor], *operands: torch.Tensor
) -> Callable[[str], list[torch.Tensor]]:
    """The result, and the gradients of its weighted sum."""
    weights = drawn(ROWS, COLUMNS)

    def run(device: str) -> list[torch.Tensor]:
        # A CPU adds gradients of weights in bfloat16, the device in float32.
        wide = torch.float32 if device == "cpu" else operands[0].dtype
        given = [each.clone().to(device, wide).requires_grad_() for each in operands]
        result = function(*given)
        (result.float() * weights.to(device)).sum().backward()
        gradients = [each.grad for each in given]
        assert all(each is not None for each in gradients)
        return [result.detach(), *(each for each in gradients if each is not None)]

    return run


def norm(dtype: torch.dtype, *, of_squares: bool) -> Callable[[str], list[torch.Tensor]]:
    x, weight, bias = (drawn(*shape, dtype=dtype) for shape in ((ROWS, COLUMNS), *[(COLUMNS,)] * 2))
    if of_squares:
        return with_gradients(lambda x, w: F.rms_norm(x, (COLUMNS,), w, 1e-5), x, weight)
    return with_gradients(lambda x, w, b: F.layer_norm(x, (COLUMNS,), w, b), x, weight, bias)


def steps_of_adamw(**form: bool) -> Callable[[str], list[torch.Tensor]]:
    values = [(drawn(*shape), drawn(*shape)) for shape in ((700, 513), (7,), (512, 512), ())]

    def run(device: str) -> list[torch.Tensor]:
        parameters = [torch.nn.Parameter(value.clone().to(device)) for value, _ in values]
        # The formula of the CPU in one place for all forms.
        optimizer = torch.optim.AdamW(parameters, lr=0.01, **({} if device == "cpu" else form))
        for step in range(3):
            for parameter, (_, gradient) in zip(parameters, values, strict=True):
                parameter.grad = (gradient * (step + 1)).to(device)
            optimizer.step()
        return [each.detach() for each in parameters]

    return run


def gradient_of_rows(device: str) -> list[torch.Tensor]:
    # Rows that are named once, twice, and more often than a gather has rows.
    index = torch.cat([torch.arange(200), torch.arange(0, 100, 3), torch.full((90,), 7)])
    grad = torch.arange(index.numel() * 600).reshape(-1, 600).remainder(97).sub(48) / 8
    table = torch.ones(300, 600).to(device)
    added = table.index_add(0, index.to(device), grad.to(device))
    (gradient,) = torch.autograd.grad(
        F.embedding(index.to(device), table.requires_grad_(), padding_idx=5), table, grad.to(device)
    )
    return [gradient, added]


def lists_that_use_results(device: str) -> list[torch.Tensor]:
    # Each tensor is an operand after another row has written it.
    tensors = [torch.full((3000,), float(number)).to(device) for number in range(4)]
    a, b, c, d = tensors
    torch._foreach_add_([a, b, a], [b, c, a])
    torch._foreach_mul_([d, d], [a, b])
    return tensors


def broadcasts(device: str) -> list[torch.Tensor]:
    row, column = torch.arange(COLUMNS).to(device), torch.arange(ROWS).to(device).unsqueeze(1)
    whole = torch.ones(ROWS, COLUMNS).to(device)
    return [
        whole + row,
        whole * column + row,
        row.float().expand(ROWS, COLUMNS).contiguous(),
        column.float().expand(ROWS, COLUMNS).contiguous(),
        row + column,
    ]


CASES: dict[str, Callable[[str], Sequence[torch.Tensor]]] = {
    "layer_norm": norm(torch.float32, of_squares=False),
    "layer_norm, bfloat16": norm(torch.bfloat16, of_squares=False),
    "rms_norm": norm(torch.float32, of_squares=True),
    "rms_norm, bfloat16": norm(torch.bfloat16, of_squares=True),
    "softmax": with_gradients(lambda x: x.softmax(1), drawn(ROWS, COLUMNS)),
    "fused AdamW": steps_of_adamw(fused=True),
    "foreach AdamW": steps_of_adamw(foreach=True),
    "gradient of rows": gradient_of_rows,
    "lists that use results": lists_that_use_results,
    "broadcasts": broadcasts,
}


def main() -> None:
    for name, run in CASES.items():
        error = 0.0
        for actual, expected in zip(run("ahbm"), run("cpu"), strict=True):
            assert actual.shape == expected.shape
            difference = (actual.cpu().double() - expected.double()).abs().max().item()
            error = max(error, difference / max(1.0, expected.double().abs().max().item()))
        sys.stdout.write(f"{name} | {error}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
