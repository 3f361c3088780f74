"""Group m: a send and a receive between two SIPs, each posted before the other."""

from kernbench import torch
from kernbench.oracle.checks.check import Check
from kernbench.oracle.theory.kernels.kernel_costs import MessageTimes
from kernbench.oracle.theory.topology_file import TopologyFile
from kernbench.simulation import simulate
from runtime.core.config.config_file import default_file
from runtime.core.rng import Random, seeded
from runtime.core.trace import OpRecord
from runtime.model.placement import ONE_PE

RANKS = 2


def messages(file: TopologyFile, seed: int) -> list[Check]:
    """Messages on the user's file, and two of them in turn."""
    return [*messages_on(file, seeded(seed, 0), "m.0", "the file"), _in_turn(_with_queues(file))]


def messages_on(file: TopologyFile, rng: Random, prefix: str, title: str) -> list[Check]:
    """Sends and receives on one topology, with ids that start with `prefix`."""
    file = _with_queues(file)
    times, most = _times(file), _largest(file)
    checks: list[Check] = []
    for nbytes in (1, rng.randint(2, most - 1), most):
        for late, what, formula, expected_ps in (
            (0, "send, receive posted before", "load + slot", times.send_ps(nbytes)),
            (
                1,
                "receive, send posted before",
                "notice + load + slot + copy",
                times.receive_ps(nbytes),
            ),
        ):
            checks.append(
                Check(
                    id=f"{prefix}.{len(checks)}",
                    text=f"{title}: {what}, {nbytes} B",
                    formula=formula,
                    expected=expected_ps,
                    measured=_posted_ps(file, nbytes, late),
                    unit="ps",
                )
            )
    return checks


def _with_queues(file: TopologyFile) -> TopologyFile:
    """The queues are those of the shipped file, whose control packets have the size of a credit."""
    return file.with_values({"control_bytes": _queues()["ipcq_credit_size_bytes"]})


def _times(file: TopologyFile) -> MessageTimes:
    return MessageTimes(file, _queues()["vc_chunk_size"])


def _largest(file: TopologyFile) -> int:
    return min(_queues()["slot_size"], file["packet_bytes"])


def _in_turn(file: TopologyFile) -> Check:
    """Two sends to one rank that has posted both receives: the second begins after the first."""
    nbytes = _largest(file)
    first, second = sorted(_spans(file, nbytes, 0, messages=2), key=lambda span: span.end_ps)
    return Check(
        id="m.0.turn",
        text=f"the second of two sends that are posted together, {nbytes} B: behind the first",
        formula="load + slot",
        expected=_times(file).send_ps(nbytes),
        measured=second.end_ps - first.end_ps,
        unit="ps",
    )


def _queues() -> dict[str, int]:
    return TopologyFile.of(default_file("ccl.yaml").read_text())["defaults"]


def _posted_ps(file: TopologyFile, nbytes: int, late: int) -> int:
    """The time of the end that rank `late` posts, long after the other one."""
    [span] = _spans(file, nbytes, late)
    return span.end_ps - span.start_ps


def _spans(file: TopologyFile, nbytes: int, late: int, messages: int = 1) -> list[OpRecord]:
    """The transfers of rank `late`, which posts its ends of all messages long after the other."""

    def program(rank: int) -> None:
        dist = torch.distributed
        dist.init_process_group("ahbm", algorithm="ring")
        tensors = [torch.zeros(nbytes, dtype=torch.int8, dp=ONE_PE) for _ in range(messages)]
        torch.ahbm.synchronize()
        if rank == late:
            # Reads of the host: they end long before the rank posts its end.
            for _ in range(20):
                tensors[0].numpy()
        for tensor in tensors:
            if rank:
                dist.irecv(tensor, 0)
            else:
                dist.isend(tensor, 1)
        torch.ahbm.synchronize()

    world = simulate(program, RANKS, topology=file.text, data=False)
    return [record for sip, record in world.of("pe_cpu.transfer") if sip == late]
