"""Group m: a send and a receive between two SIPs, each posted before the other."""

from kernbench import torch
from kernbench.simulation import simulate
from kernbench.theory.messages import MessageTimes
from kernbench.theory.topology_file import TopologyFile
from kernbench.validate.check import Check
from kernbench.validate.drawn import drawn
from runtime.core.config.config_file import default_file
from runtime.core.rng import seeded
from runtime.core.trace import OpRecord
from runtime.model.placement import ONE_PE

TOPOLOGIES = 3
"""Random topologies beside that of the user."""
RANKS = 2


def messages(file: TopologyFile, seed: int, number: int) -> list[Check]:
    """Messages on one topology: number 0 is the user's file, others are random variants of it."""
    rng = seeded(seed, number)
    chosen = drawn(file, rng) if number else file
    # The queues are those of the shipped file, whose control packets have the size of a credit.
    chosen = chosen.with_values({"control_bytes": _queues()["ipcq_credit_size_bytes"]})
    times = MessageTimes(chosen, _queues()["vc_chunk_size"])
    most = min(_queues()["slot_size"], chosen["packet_bytes"])
    title = f"drawn {number}" if number else "the file"
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
                    id=f"m.{number}.{len(checks)}",
                    text=f"{title}: {what}, {nbytes} B",
                    formula=formula,
                    expected=expected_ps,
                    measured=_posted_ps(chosen, nbytes, late),
                    unit="ps",
                )
            )
    return checks if number else [*checks, _in_turn(chosen, times, most)]


def _in_turn(file: TopologyFile, times: MessageTimes, nbytes: int) -> Check:
    """Two sends to one rank that has posted both receives: the second begins after the first."""
    first, second = sorted(_spans(file, nbytes, 0, messages=2), key=lambda span: span.end_ps)
    return Check(
        id="m.0.turn",
        text=f"the second of two sends that are posted together, {nbytes} B: behind the first",
        formula="load + slot",
        expected=times.send_ps(nbytes),
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
