"""Searches the machine with the least product of time and cost, on any engine, with Optuna.

    pip install optuna
    python examples/search_optuna.py
    python examples/search_optuna.py --on dask:localhost:8786 --in-flight 8 --trials 64

Optuna proposes the bandwidths of the UCIe links and of the memory of a PE; kernbench simulates an
all-reduce with them, in a process of its own. With `--in-flight` the
same, the search is the same on every engine: results return in the order of the proposals, so that
the k-th proposal depends on the first k - N results, whichever worker is the fastest.
"""

import argparse
import pickle  # noqa: TID251 - for workers of this process
from collections import deque
from concurrent.futures import Executor, Future
from dataclasses import dataclass

import msgspec
import numpy as np
import optuna

from kernbench import DPPolicy
from kernbench.oracle.theory.topology_file import TopologyFile
from kernbench.points.code import code_of_this_process
from kernbench.points.executors import open_executor
from kernbench.points.task import Limits, PointResult, PointTask
from kernbench.points.worker import end_point_processes, run_task
from kernbench.studies.all_reduce import run_all_reduce
from runtime.core.config.config_file import default_file, read_text
from runtime.core.simtime import format_ps

ELEMENTS = 16 * 1024


@dataclass(frozen=True)
class Machine:
    """The bandwidths that the search varies."""

    ucie_gbs: int
    tcm_gbs: int

    @property
    def cost(self) -> float:
        """Cost of the parts that vary, in that of a link of 64 GB/s; a made-up price list."""
        return self.ucie_gbs / 64 + self.tcm_gbs / 256


def simulated_ps(machine: Machine) -> int:
    """The time of an all-reduce of 64 KiB over two SIPs."""
    topology = TopologyFile.of(read_text(default_file("topology.yaml"))).on_a_ring(2)
    values = {"ucie.bw_gbs": machine.ucie_gbs, "pe.tcm.bw_gbs": machine.tcm_gbs}
    shards = [np.full((8, ELEMENTS // 8), rank + 1, np.int32) for rank in range(2)]
    run = run_all_reduce(
        shards,
        shards[0] + shards[1],
        DPPolicy(cube="row_wise", num_cubes=1, num_pes=8),
        algorithm="ring",
        topology_yaml=topology.with_values(values).text,
        ccl_yaml=read_text(default_file("ccl.yaml")),
    )
    if run.wrong:
        raise ValueError(f"{machine}: {run.wrong} sums are wrong")
    return run.time_ps


def submitted(executor: Executor, machine: Machine) -> Future[PointResult]:
    """The simulation of a machine, by a worker with the code of this process."""
    payload = pickle.dumps((simulated_ps, machine))
    return executor.submit(
        run_task, PointTask(payload, Limits(seconds=600), code_of_this_process())
    )


def proposed(trial: optuna.Trial) -> Machine:
    """The machine that Optuna proposes."""
    return Machine(
        trial.suggest_int("ucie.bw_gbs", 32, 512, step=32),
        trial.suggest_int("pe.tcm.bw_gbs", 64, 1024, step=64),
    )


def report(study: optuna.Study, trial: optuna.Trial, machine: Machine, result: PointResult) -> None:
    """Return the result to Optuna; a simulation that failed is a failed trial."""
    if result.kind != "row":
        study.tell(trial, state=optuna.trial.TrialState.FAIL)
        print(f"{trial.number:>3}  {machine}  {result.text}")
        return
    time_ps = msgspec.msgpack.decode(result.content, type=int)
    study.tell(trial, time_ps / 1e6 * machine.cost)
    print(f"{trial.number:>3}  {machine}  {format_ps(time_ps)}  cost {machine.cost:.2f}")


def search(on: str, in_flight: int, trials: int, seed: int) -> optuna.Study:
    """Propose, simulate and report, with `in_flight` simulations at once."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed))
    running = deque[tuple[optuna.Trial, Machine, Future[PointResult]]]()
    with open_executor(on, in_flight) as executor:
        try:
            for _ in range(trials):
                if len(running) == in_flight:
                    trial, machine, future = running.popleft()
                    report(study, trial, machine, future.result())
                trial = study.ask()
                machine = proposed(trial)
                running.append((trial, machine, submitted(executor, machine)))
            for trial, machine, future in running:
                report(study, trial, machine, future.result())
        finally:
            for _, _, future in running:
                future.cancel()
            end_point_processes()
    return study


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--on", default="local", help="engine, as for a study")
    parser.add_argument("--in-flight", type=int, default=2, help="simulations at once")
    parser.add_argument("--trials", type=int, default=24)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    study = search(options.on, options.in_flight, options.trials, options.seed)
    best = ", ".join(f"{name} {value}" for name, value in study.best_params.items())
    print(f"best: {best}: {study.best_value:.3f} us x cost")


if __name__ == "__main__":
    # Imported by its name, since workers import the function that simulates from there.
    from search_optuna import main as main_of_module

    main_of_module()
