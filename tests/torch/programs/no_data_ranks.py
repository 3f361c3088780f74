"""Collectives, messages and data parallelism, of floating point and of known integers; each rank
prints its simulated times, and what integers it has received.
"""

import sys
from pathlib import Path

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh

sys.path.insert(0, str(Path(__file__).parents[3] / "examples" / "torch"))
import gpt

# Smaller than the example, since every run is repeated.
gpt.LAYERS, gpt.CONTEXT = 1, 8
dist.init_process_group("ahbm")
RANK, RANKS = dist.get_rank(), dist.get_world_size()


def printed(name: str, *received: object) -> None:
    torch.ahbm.synchronize()
    print("=", RANK, name, torch.ahbm.now_ns(), *received, flush=True)


def own(*shape: int, dtype: torch.dtype = torch.int64) -> Tensor:
    source = torch.Generator().manual_seed(RANK)
    return torch.randint(0, 99, shape, generator=source).to(dtype).to("ahbm")


def collectives() -> None:
    x, parts = (
        torch.ones(3000, device="ahbm"),
        [torch.empty(5, device="ahbm") for _ in range(RANKS)],
    )
    dist.all_reduce(x)
    dist.all_gather(parts, x[:5])
    dist.reduce_scatter_single(torch.empty(3000 // RANKS, device="ahbm"), x)
    printed("numbers")
    tokens = own(2, 8) if RANK == 0 else torch.empty(2, 8, dtype=torch.int64, device="ahbm")
    dist.broadcast(tokens, 0)
    printed(
        "tokens", torch.nn.Embedding(99, 16).to("ahbm")(tokens[:, 1:]).shape, tokens.sum().item()
    )
    # What comes later is computed with what was there at the time of the call.
    coming, here = own(8), torch.arange(8, device="ahbm")
    dist.broadcast(coming, 1)
    total, copied = coming + here, coming.clone()
    here.fill_(50)
    coming[:4] = 7
    twice = coming * 2
    coming[4:] = here[4:]
    host = torch.arange(2)
    coming[:2] = host
    host.zero_()
    before = coming.tolist()
    coming[0] = 3
    printed("later", before, [each.tolist() for each in (total, copied, twice, coming)])
    received = []
    for op in (dist.ReduceOp.SUM, dist.ReduceOp.MAX, dist.ReduceOp.BXOR):
        received.append(own(4, dtype=torch.int32))
        dist.all_reduce(received[-1], op)
    listed = [torch.empty(3, dtype=torch.int64, device="ahbm") for _ in range(RANKS)]
    dist.all_gather(listed, own(3))
    whole = torch.empty(RANKS, 4, dtype=torch.uint8, device="ahbm")
    dist.all_gather_into_tensor(whole, own(4, dtype=torch.uint8))
    part, other = (torch.empty(2, dtype=torch.int64, device="ahbm") for _ in range(2))
    dist.reduce_scatter_single(part, own(2 * RANKS))
    dist.reduce_scatter(other, list(own(RANKS, 2).unbind()))
    received += [*listed, whole, part, other]
    printed("integers", [each.tolist() for each in received])


def exchanges() -> None:
    sizes = own(RANKS) % 3 + 1
    theirs = torch.empty_like(sizes)
    dist.all_to_all_single(theirs, sizes)
    given, taken = sizes.tolist(), theirs.tolist()
    rows = torch.empty(sum(taken), 2, dtype=torch.int64, device="ahbm")
    dist.all_to_all_single(rows, own(sum(given), 2), taken, given)
    lists = [torch.empty(2, dtype=torch.int64, device="ahbm") for _ in range(RANKS)]
    dist.all_to_all(lists, list(own(RANKS, 2).unbind()))
    gathered = [torch.empty(2, dtype=torch.int64, device="ahbm") for _ in range(RANKS)]
    dist.gather(own(2), gathered if RANK == 0 else None)
    scattered = torch.empty(2, dtype=torch.int64, device="ahbm")
    dist.scatter(scattered, list(own(RANKS, 2).unbind()) if RANK == 0 else None)
    total = own(2)
    dist.reduce(total, 1)
    received = [rows, *lists, scattered, *(gathered if RANK == 0 else [total] if RANK == 1 else [])]
    message = own(3, 2)
    if RANK == 0:
        dist.send(message.t(), 1)
        dist.send(message[0], 1, tag=3)
    elif RANK == 1:
        taken_t, first = torch.empty(3, 2, device="ahbm").long().t(), torch.empty(2).long()
        dist.recv(taken_t, 0)
        dist.recv(first, 0, tag=3)
        received += [taken_t, first]
    printed("exchanges", [each.tolist() for each in received])
    # Integers that pass from rank to rank, of which the host has waited for none.
    passed = own(3)
    if RANK:
        dist.recv(passed, RANK - 1)
    passed = passed * 2 + 1
    if RANK < RANKS - 1:
        dist.send(passed, RANK + 1)
    dist.broadcast(passed, RANKS - 1)
    total = passed + RANK
    dist.all_reduce(total)
    printed("passed", passed.tolist(), total.tolist())
    objects: list[object] = [None] * RANKS
    dist.all_gather_object(objects, {"rank": RANK, "name": "x" * RANK})
    printed("objects", objects)


def training(how: str) -> None:
    torch.manual_seed(0)
    model = gpt.parallel(gpt.Gpt().to("ahbm"), how, init_device_mesh("ahbm", (RANKS,)))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, foreach=how != "tp")
    source = torch.Generator().manual_seed(0 if how == "tp" else RANK)
    for step in range(2):
        text = torch.randint(0, gpt.VOCABULARY, (2, gpt.CONTEXT + 1), generator=source).to("ahbm")
        optimizer.zero_grad()
        logits = model(text[:, :-1]).flatten(0, 1)
        nn.functional.cross_entropy(logits, text[:, 1:].flatten()).backward()
        optimizer.step()
        printed(f"{how} step {step}")


match sys.argv[1:]:
    case ["collectives"]:
        collectives()
        exchanges()
    case [how]:
        training(how)
