"""Decode with the keys of a sequence split over PEs of the mock runtime."""

import numpy as np
import pytest

from kernbench import mock
from kernbench.benches.attention.layer import AttentionLayer, PeGrid
from kernbench.benches.attention.queues import HYPERCUBE, with_hypercube
from kernbench.benches.attention.reference import grouped_attention
from kernbench.benches.attention.split_decode import split_decode
from kernbench.oracle.theory.topology_file import TopologyFile
from runtime.ccl.config import parse_ccl
from runtime.ccl.plan import plan_of_one_sip
from runtime.core.dtypes import float16
from runtime.model.topology import parse_topology
from tests.support.attention_rings import uniform
from tests.support.runs import ROOT

CCL = parse_ccl(with_hypercube((ROOT / "ccl.yaml").read_text("utf-8")), "ccl.yaml")
SHIPPED = TopologyFile.of((ROOT / "topology.yaml").read_text("utf-8")).on_a_ring(1)
TOPOLOGY = parse_topology(
    SHIPPED.with_values({"sip.cube_mesh.w": 2, "sip.cube_mesh.h": 2}).text, "topology.yaml"
)
PLAN = plan_of_one_sip(HYPERCUBE, TOPOLOGY, CCL)
GRID = PeGrid(cubes=4, pes=8)


@pytest.mark.parametrize(
    ("kv_heads", "batch", "parts"),
    [(1, 1, 32), (4, 1, 8), (2, 4, 4), (2, 8, 2), (8, 4, 1), (8, 8, 1)],
)
def test_every_user_and_head_gets_dense_attention(kv_heads: int, batch: int, parts: int):
    tokens, depth = 4 * parts, 16
    layer = AttentionLayer(
        heads=3 * kv_heads, kv_heads=kv_heads, depth=depth, batch=batch, tokens=tokens
    )
    q = uniform(0, kv_heads, batch, 3, 1, depth, dtype=float16)
    k, v = (uniform(seed, kv_heads, batch, tokens, depth, dtype=float16) for seed in (1, 2))
    out = np.full(q.shape, np.nan, np.float16)
    width = min(4, tokens // parts)
    mock.launch(
        split_decode,
        q,
        k,
        v,
        out,
        layer,
        width,
        GRID,
        cubes=4,
        pes=8,
        topology=TOPOLOGY,
        queues=PLAN,
    )
    for user in range(batch):
        exact = grouped_attention(q[:, user].reshape(-1, 1, depth), k[:, user], v[:, user])
        found = out[:, user].reshape(exact.shape)
        np.testing.assert_allclose(found, exact, rtol=0, atol=1e-3)


def test_queues_of_the_hypercube_lead_to_the_number_that_differs_in_one_bit():
    directions = {
        (cube, pe): {pair.direction: (pair.peer.cube, pair.peer.pe) for pair in pairs}
        for (cube, pe), pairs in PLAN.items()
    }
    assert directions[1, 3] == {"bit_0": (1, 2), "bit_1": (1, 1), "bit_2": (1, 7)}
    across = {"bit_3": (0, 0), "bit_4": (3, 0)}
    assert directions[1, 0] == {"bit_0": (1, 1), "bit_1": (1, 2), "bit_2": (1, 4)} | across
