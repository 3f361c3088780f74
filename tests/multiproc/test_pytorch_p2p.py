"""Sends and receives in real processes, as docs/pytorch.md states them."""

from pathlib import Path

import pytest

from tests.support.runs import kernbench
from tests.support.topologies import variant_text

pytestmark = [pytest.mark.slow, pytest.mark.multiproc]

WORKS = """
from kernbench import BenchOutcome, bench, tl, torch
dist = torch.distributed

def spin(x):
    for _ in range(3):
        with tl.scratch():
            tl.zeros(200_000, tl.int8)
    tl.store(x, tl.load(x, 8) + 1)

@bench("posted", "sends and receives")
def main(rank: int) -> BenchOutcome:
    dist.init_process_group("ahbm")
    size = dist.get_world_size()
    right, left = (rank + 1) % size, (rank - 1) % size

    # The ring of PyTorch's tutorial, and both operations posted in either order.
    for numel in (1, 4096, 16_384):
        mine, theirs = torch.full((numel,), float(rank)), torch.zeros(numel)
        request = dist.isend(mine, right)
        assert dist.recv(theirs, left) == left
        assert request.wait() is True
        assert (theirs.numpy() == left).all()
        theirs = torch.zeros(numel)
        requests = [dist.irecv(theirs, right), dist.isend(mine, left)]
        for request in requests:
            request.wait()
        assert (theirs.numpy() == right).all()

    # The post returns at once; is_completed becomes true; a stream waits, the rank goes on.
    before_ns = torch.ahbm.now_ns()
    theirs = torch.zeros(16_384)
    requests = dist.batch_isend_irecv([
        dist.P2POp(dist.isend, mine, right, tag=7), dist.P2POp(dist.irecv, theirs, left, tag=7)
    ])
    requests.append(dist.irecv(torch.zeros(16_384), left))
    dist.isend(mine, right)
    assert len(requests) == 3 and not any(each.is_completed() for each in requests)
    assert all(each.wait() for each in requests)
    assert torch.ahbm.now_ns() == before_ns
    torch.ahbm.synchronize()
    assert all(each.is_completed() for each in requests)

    # Tags and groups select the message, not the order of the calls.
    others = dist.new_group(), dist.new_group()
    tensors = [torch.full((5000,), float(number)) for number in range(4)]
    calls = [(0, None), (3, None), (3, others[0]), (3, others[1])]
    for x, (tag, group) in zip(tensors, calls):
        dist.isend(x, right, group=group, tag=tag)
    taken = [torch.zeros(50, 100) for _ in calls]
    for index in (2, 1, 3, 0):
        tag, group = calls[index]
        dist.recv(taken[index], left, group=group, tag=tag)
    assert [float(x.numpy().mean()) for x in taken] == [0, 1, 2, 3]

    # Windows of one tensor, many at once, beside a collective and a kernel.
    whole, summed, counted = torch.zeros(size, 3000), torch.ones(12_000), torch.zeros(8)
    peers = [each for each in range(size) if each != rank]
    requests = [dist.irecv(whole.narrow(0, peer, 1), peer) for peer in peers]
    for peer in peers:
        requests.append(dist.isend(torch.full((3000,), float(rank)), peer))
    reduced = dist.all_reduce(summed, async_op=True)
    torch.launch("spin", spin, counted)
    for request in [*requests, reduced]:
        request.wait()
    for peer in peers:
        assert (whole.numpy()[peer] == peer).all()
    assert (summed.numpy() == size).all() and (counted.numpy() == 1).all()
    return BenchOutcome("posted", ok=3, wrong=0)
"""
NEVER = """
import sys
from runtime import torch
dist = torch.distributed

def main():
    dist.init_process_group("ahbm")
    rank, x, y = dist.get_rank(), torch.zeros(40_000), torch.zeros(40_000)
    case = sys.argv[1]
    if case == "send first":
        dist.send(x, 1 - rank)
        dist.recv(y, 1 - rank)
    elif case == "other tag":
        dist.recv(y, 0, tag=5) if rank else dist.send(x, 1, tag=4)
    elif case == "no send":
        dist.recv(y, 0) if rank else None
    elif case == "other size":
        dist.recv(torch.zeros(9), 0) if rank else dist.send(x, 1)

if __name__ == "__main__":
    main()
"""


def one_cube(tmp_path: Path) -> str:
    """The path of a topology file whose SIPs start fast."""
    topology = tmp_path / "small.yaml"
    topology.write_text(variant_text(sip__cube_mesh={"w": 1, "h": 1}))
    return str(topology)


def test_every_order_of_posting_that_can_end_does_with_one_digest(tmp_path: Path) -> None:
    script = tmp_path / "works.py"
    script.write_text(WORKS)
    bench = ("--bench", f"{script}:posted", "--sips", "3", "--topology", one_cube(tmp_path))
    runs = [
        kernbench(tmp_path / procs, *bench, "--procs", procs, *options)
        for procs, options in (("1", ()), ("2", ("--verify-data",)))
    ]
    assert [run.code for run in runs] == [0, 0], runs[0].err + runs[1].err
    assert runs[0].report["digest"] == runs[1].report["digest"]


@pytest.mark.parametrize(
    ("case", "texts"),
    [
        (
            "send first",
            [
                "cycle: rank 0 send to rank 1 -> rank 1 send to rank 0 -> (back)",
                "hint: each of these ranks sends before its receive is posted: post both with",
                "rank 0: send to rank 1, tag 0, 40,000 elements of f32, at never.py:11: rank 1",
                "recv at never.py:12, behind its send to rank 0 at never.py:11",
            ],
        ),
        (
            "other tag",
            [
                "rank 1: recv from rank 0, tag 5, 40,000 elements of f32, at never.py:14: rank 0",
                "rank 0 calls sends that wait with tag 4 instead",
            ],
        ),
        ("no send", ["rank 0 calls no send for it and has finished its program"]),
        (
            "other size",
            [
                "Detected mismatch between collectives on ranks: a message and its receive have ",
                "rank 0 sends world rank 0 to 1 #1: 40,000 elements of f32, at never.py:18",
                "rank 1 receives world rank 0 to 1 #1: 9 elements of f32, at never.py:18",
            ],
        ),
    ],
)
def test_what_cannot_end_names_ranks_tags_and_lines(
    tmp_path: Path, case: str, texts: list[str]
) -> None:
    (tmp_path / "never.py").write_text(NEVER)
    chips = ("--sips", "2", "--topology", one_cube(tmp_path))
    run = kernbench(tmp_path / "run", *chips, str(tmp_path / "never.py"), case)
    assert run.code != 0
    said = run.err
    for text in texts:
        assert text in said, run.err
    # The causes come first, the registers of queues last if at all.
    assert "credits" not in said.partition(texts[0])[0]
