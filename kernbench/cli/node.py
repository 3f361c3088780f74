"""`kernbench node`: one process of a run whose processes a launcher of the site starts."""

from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

import click

from kernbench.cli.group import arguments_of_command
from kernbench.cli.launchers.meeting import MeetingOptions
from kernbench.cli.launchers.request import NodeRequest
from kernbench.cli.run import GROUPS, RunCommand, request_of
from kernbench.command.options import COUNT, FILE, NATURAL, cli_context, option
from kernbench.command.run_request import RunRequest
from runtime.core.bench_registry import Study
from runtime.core.errors import UsageError

_EXAMPLES = """\b
examples, the same command line for every process:
  torchrun --nnodes 2 --nproc-per-node 4 --no-python kernbench node train.py
  srun --ntasks 8 kernbench node --bench ccl-allreduce
  mpirun -x KERNBENCH_MASTER=10.0.0.1:29400 -n 8 kernbench node train.py
  kernbench node --rank 0 --world 2 --master 127.0.0.1:29400 train.py"""

_OF_A_PROCESS = ("--rank", "--bind", "--secret-file", "--master", "--out", "--timeout")
"""The options that need not be the same for all processes. The last two are for rank 0 alone."""
_PLACE = (
    option("--rank", "R", NATURAL, "number of this process, from 0  [default: by the launcher]"),
    option("--world", "W", COUNT, "number of all processes  [default: by the launcher]"),
    option(
        "--master",
        "HOST:PORT",
        str,
        "where the process of rank 0 listens  [default: KERNBENCH_MASTER, torchrun, Slurm]",
    ),
    option(
        "--bind",
        "ADDRESS",
        str,
        "address of this host for the others  [default: that of the route to the master]",
    ),
    option(
        "--secret-file",
        "FILE",
        FILE,
        "the secret of a run over several hosts, mode 0600  [default: KERNBENCH_SECRET_FILE, "
        "KERNBENCH_SECRET]",
    ),
)


_OF_THE_LAUNCHER = ("list", "procs", "nproc_per_node", "nnodes", "standalone")
"""The options of `run` about the number of processes, which the launcher starts, and `--list`."""
_SIPS = option("--sips", "N", COUNT, "number of SIPs  [default: one for each process]")
_GROUPS = {
    "which process this is": _PLACE,
    **{
        title: tuple(
            _SIPS if each.name == "sips" else each
            for each in options
            if each.name not in _OF_THE_LAUNCHER
        )
        for title, options in GROUPS.items()
    },
}


class NodeCommand(RunCommand):
    """The command `run`, with options for the place of this process."""

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """The usage line."""
        formatter.write_usage(
            "kernbench node", "[options] [options of run] [SCRIPT [arguments of the script]]"
        )


@click.pass_context
def _node(
    context: click.Context,
    /,
    *,
    rank: int | None,
    world: int | None,
    **options: Any,
) -> int:
    if isinstance(study := options["bench"], Study) and not options["script"]:
        raise UsageError(
            f"{study.name} is a study, which makes many simulations: --on runs them on a cluster "
            "(docs/hosts.md)"
        )
    meeting = MeetingOptions(*(options.pop(name) for name in ("master", "bind", "secret_file")))
    run = request_of(context, **options)
    assert isinstance(run, RunRequest), "the bench is no study"
    command = _command_of_all(arguments_of_command(context))
    return cli_context(context).execute(NodeRequest(run, rank, world, meeting, command))


def _command_of_all(arguments: Sequence[str]) -> str:
    """A hash of the arguments that all processes have in common."""
    common = list[str]()
    skips = False
    for argument in arguments:
        name, equals, _ = argument.partition("=")
        if skips:
            skips = False
        elif name in _OF_A_PROCESS:
            skips = not equals
        else:
            common.append(argument)
    return blake2b("\0".join(common).encode(), digest_size=8).hexdigest()


node_command = NodeCommand(
    _GROUPS,
    name="node",
    callback=_node,
    help="One process of a run whose processes a launcher starts, on one host or on several: "
    "torchrun, srun, mpirun, or a shell.",
    epilog=_EXAMPLES,
)
