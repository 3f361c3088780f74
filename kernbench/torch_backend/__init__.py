"""The device and process group `ahbm` of PyTorch itself: `import torch`, with the extra
`kernbench[torch]`.

Tensors of the device have their storage in simulated HBM, operators of PyTorch are kernels of this
package, and collectives are those of the fabric (ADR 27). PyTorch loads the package by its entry
point in the group `torch.backends`. Nothing else imports it.
"""

import os
import sys
from typing import NoReturn

from runtime.device.rank.rank_state import current_rank
from runtime.wire.environment import RUN_DIRECTORY, TORCHRUN_RUN


def autoload() -> None:
    """Called at the end of `import torch`: connects the device in the program of a rank. A worker
    of torchrun joins the run which its environment names, and a process that a rank has started
    refuses the device. Elsewhere it does nothing.
    """
    if current_rank.get(None) is None:
        if os.environ.get(TORCHRUN_RUN) and "TORCHELASTIC_RUN_ID" in os.environ:
            from kernbench.torch_backend.runtime.torchrun_worker import join

            join()
        if os.environ.get(RUN_DIRECTORY):
            from kernbench.torch_backend.runtime.child_processes import refuse_device

            refuse_device()
            return
        _name_the_command()
        return
    try:
        from kernbench.torch_backend.connection import connect

        connect()
    except ImportError as problem:
        # Not raised: PyTorch would put a sentence of its own in place of the reason.
        sys.exit(f"kernbench: error: {problem}")


def _name_the_command() -> None:
    """Make `init_process_group("ahbm")` outside of a run an error that names the command."""
    # Not loaded for this: a program without process groups does not need it.
    distributed = sys.modules.get("torch.distributed")
    if distributed is not None and distributed.is_available():
        distributed.Backend.register_backend("ahbm", _refused, devices=["cpu"])


def _refused(*_: object) -> NoReturn:
    raise RuntimeError(
        "no rank of a simulation is running here: start the script with `kernbench run --sips N "
        f"script.py`, or under torchrun with {TORCHRUN_RUN}=run in the environment"
    )
