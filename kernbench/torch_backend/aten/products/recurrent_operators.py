"""The cells of LSTM and GRU, which PyTorch calls in one piece on devices other than CPUs.

Gates lie side by side in a row, in PyTorch's order: input, forget, cell, output of an LSTM; reset,
update, new of a GRU. The workspace has what the gradients need.
"""

import torch
from torch import Tensor

from kernbench.torch_backend.aten.operators import operator


def _biased(gates: Tensor, bias: Tensor | None) -> Tensor:
    return gates if bias is None else gates + bias


@operator("_thnn_fused_lstm_cell")
def _lstm_cell(
    of_input: Tensor,
    of_hidden: Tensor,
    cell: Tensor,
    input_bias: Tensor | None = None,
    hidden_bias: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    gates = _biased(of_input, input_bias) + _biased(of_hidden, hidden_bias)
    entry, kept, new, shown = gates.chunk(4, dim=1)
    entry, kept, new, shown = entry.sigmoid(), kept.sigmoid(), new.tanh(), shown.sigmoid()
    following = kept * cell + entry * new
    return shown * following.tanh(), following, torch.cat([entry, kept, new, shown], dim=1)


@operator("_thnn_fused_lstm_cell_backward_impl")
def _lstm_cell_backward(
    of_hidden: Tensor | None,
    of_cell: Tensor | None,
    cell: Tensor,
    following: Tensor,
    workspace: Tensor,
    has_bias: bool,
) -> tuple[Tensor | None, ...]:
    entry, kept, new, shown = workspace.chunk(4, dim=1)
    bent = following.tanh()
    hidden = torch.zeros_like(bent) if of_hidden is None else of_hidden
    inner = hidden * shown * (1 - bent * bent)
    if of_cell is not None:
        inner = inner + of_cell
    gates = torch.cat(
        [
            inner * new * entry * (1 - entry),
            inner * cell * kept * (1 - kept),
            inner * entry * (1 - new * new),
            hidden * bent * shown * (1 - shown),
        ],
        dim=1,
    )
    return gates, inner * kept, gates.sum(0) if has_bias else None


@operator("_thnn_fused_gru_cell")
def _gru_cell(
    of_input: Tensor,
    of_hidden: Tensor,
    hidden: Tensor,
    input_bias: Tensor | None = None,
    hidden_bias: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    first = _biased(of_input, input_bias).chunk(3, dim=1)
    second = _biased(of_hidden, hidden_bias).chunk(3, dim=1)
    reset, update = ((a + b).sigmoid() for a, b in zip(first[:2], second[:2], strict=True))
    new = (first[2] + reset * second[2]).tanh()
    workspace = torch.cat([reset, update, new, hidden, second[2]], dim=1)
    return new + update * (hidden - new), workspace


@operator("_thnn_fused_gru_cell_backward")
def _gru_cell_backward(
    grad: Tensor, workspace: Tensor, has_bias: bool
) -> tuple[Tensor | None, ...]:
    reset, update, new, hidden, inner = workspace.chunk(5, dim=1)
    of_new = grad * (1 - update) * (1 - new * new)
    of_reset = of_new * inner * reset * (1 - reset)
    of_update = grad * (hidden - new) * update * (1 - update)
    first = torch.cat([of_reset, of_update, of_new], dim=1)
    second = torch.cat([of_reset, of_update, of_new * reset], dim=1)
    biases = (first.sum(0), second.sum(0)) if has_bias else (None, None)
    return first, second, grad * update, *biases
