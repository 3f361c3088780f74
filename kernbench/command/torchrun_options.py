"""The options of `torchrun` which `kernbench run` takes before a script, and why not the others.

A command line of torchrun starts the same ranks here: `torchrun --nproc-per-node 8 train.py` is
`kernbench run --nproc-per-node 8 train.py`. Options about several hosts, restarts and log files
have no counterpart, and each is refused with what to do instead.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import click

from kernbench.command.options import COUNT, option
from runtime.core.errors import UsageError

_ONE_HOST = "all ranks of a run are on this host and meet without an address: omit it"
_LOGS = "the lines of all ranks go to the standard output and error of the command: redirect those"
_REFUSED: Mapping[str, str] = {
    **dict.fromkeys(
        (
            *("--rdzv-backend", "--rdzv-endpoint", "--rdzv-id", "--rdzv-conf", "--master-addr"),
            *("--master-port", "--node-rank", "--local-addr"),
        ),
        _ONE_HOST,
    ),
    **dict.fromkeys(("--tee", "--redirects", "--log-dir", "--local-ranks-filter"), _LOGS),
    "--max-restarts": "a rank that fails ends the run, and no run is started again: omit it",
    "--no-python": "ranks are programs in Python: give a script, or a module with -m",
    "--run-path": "a script is run by its path anyway: omit it",
    "--start-method": "each rank is a process with an interpreter of its own: omit it",
    "--monitor-interval": "the end of a process is noticed at once: omit it",
    "--role": "all ranks have the role 'default': omit it",
}
"""The options of torchrun without a counterpart, with the reason."""


def _sips(text: Any) -> float:
    if text in ("auto", "cpu", "gpu", "xpu"):
        raise click.BadParameter(f"expected the number of SIPs, got {text!r}: this host has none")
    return COUNT(text)


def _hosts(text: Any) -> str:
    if str(text) not in ("1", "1:1"):
        raise click.BadParameter(
            f"got {text!r}, but all SIPs of a run are simulated on this host: "
            "--nnodes 4 --nproc-per-node 8 is --sips 32"
        )
    return str(text)


TORCHRUN = (
    option(
        ("--nproc-per-node", "--nproc_per_node", "nproc_per_node"),
        "N",
        _sips,
        "as --sips: a rank for each SIP",
    ),
    option("--nnodes", "1", _hosts, "the number of hosts, which is 1"),
    click.Option(["--standalone"], is_flag=True, help="one host, as always"),
    click.Option(
        ["-m", "--module"], is_flag=True, help="SCRIPT is the name of a module, as of python -m"
    ),
    click.Option(
        ["--as-cuda"],
        is_flag=True,
        help="'cuda' and 'nccl' in a script of PyTorch are the simulated device and its backend",
    ),
)
"""The options that `kernbench run` takes."""


@dataclass(frozen=True)
class ScriptStart:
    """Start of the ranks of a script; each field is the option of the same name."""

    nproc_per_node: int | None = None
    nnodes: str | None = None
    standalone: bool = False
    module: bool = False
    as_cuda: bool = False

    def sips(self, sips: int | None) -> int | None:
        """The number of SIPs, by `--sips` or by `--nproc-per-node`; `UsageError` if they differ."""
        own = self.nproc_per_node
        if own is not None and sips not in (None, own):
            raise UsageError(
                f"--nproc-per-node {own} with --sips {sips}: both are the number of ranks"
            )
        return sips if own is None else own

    def refuse(self) -> None:
        """Raise `UsageError` for any option, as no script is given."""
        if self.module:
            raise UsageError("-m needs the name of a module: -m package.train")
        for name, value in vars(self).items():
            if value:
                given = f"--{name.replace('_', '-')}"
                instead = "; a bench takes --sips" if name == "nproc_per_node" else ""
                raise UsageError(f"{given} is an option for a script{instead}")


def script_start(options: dict[str, Any]) -> ScriptStart:
    """The options of this module, which are taken out of `options`."""
    names = ScriptStart.__dataclass_fields__
    return ScriptStart(**{name: options.pop(name) for name in names if name in options})


def refuse_options(given: Sequence[str]) -> None:
    """Raise `UsageError` for the first option of torchrun that has no counterpart."""
    for argument in given:
        name = argument.partition("=")[0]
        # torchrun has each name with dashes and with underscores.
        reason = _REFUSED.get(name.replace("_", "-"))
        if name.startswith("--") and reason:
            raise UsageError(f"{name} of torchrun: {reason}")
