"""The device and process group `ahbm` of PyTorch itself: `import torch`, with the extra
`kernbench[torch]`.

Tensors of the device have their storage in simulated HBM, operators of PyTorch are kernels of this
package, and collectives are those of the fabric (ADR 27). PyTorch loads the package by its entry
point in the group `torch.backends`. Nothing else imports it.
"""

from runtime.torch.rank_state import current_rank


def autoload() -> None:
    """Called at the end of `import torch`: connects the device in the program of a rank, and does
    nothing elsewhere.
    """
    if current_rank.get(None) is None:
        return
    from kernbench.torch_backend.connection import connect

    connect()
