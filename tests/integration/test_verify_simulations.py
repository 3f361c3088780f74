"""`--verify-data` on simulated chips: right runs pass bit by bit, wrong components are named."""

import numpy as np
import pytest
from msgspec.structs import replace

from coordinator.verify.check import verify
from coordinator.verify.verdict import Verdict
from kernbench.command.simulation import with_races
from kernbench.explain.records.collected import simulated_records
from runtime import DPPolicy, tl, torch
from runtime.core import dtypes
from runtime.core.trace import Operand
from runtime.model.addresses import AddressMap
from runtime.model.topology import parse_topology
from tests.support.topologies import variant_text
from tests.support.world import Simulation, simulate

ONE_PE = {
    "sip__cube_mesh": {"w": 1, "h": 1},
    "cube__pe_layout__corners": ["NW"],
    "cube__pe_layout__pe_per_corner": 1,
}
M, K, N = 40, 70, 36
LONG = 16384
"""Elements of a load that lasts while another PE stores."""


def layer(
    x: tl.Pointer, weight: tl.Pointer, bias: tl.Pointer, y: tl.Pointer, z: tl.Pointer
) -> None:
    """A product that is streamed, with its epilogue, and one of values in TCM, scaled and
    normalised.
    """
    a, b = tl.ref(x, (M, K)), tl.ref(weight, (K, N))
    pending = tl.composite(
        "gemm", a, b, tl.ref(y, (M, N)), bias=tl.load(bias, N), activation="gelu"
    )
    block = tl.load(x, (8, 16), (K, 1))
    scores = tl.dot(block[:, 4:16], block.T[4:16, :])
    tl.store(z, tl.softmax(scores * 0.125).to(dtypes.float16))
    tl.wait(pending)


def run_layer(**impl: str) -> tuple[Simulation, Verdict]:
    def program(_rank: int) -> None:
        draw = np.random.default_rng(3).normal
        x, weight, bias = (
            torch.from_numpy(draw(size=shape).astype(np.float16))
            for shape in ((M, K), (K, N), (N,))
        )
        y, z = torch.empty(M, N, dtype=torch.float16), torch.empty(8, 8, dtype=torch.float16)
        torch.launch("layer", layer, x, weight, bias, y, z)
        y.numpy()

    text = variant_text(**ONE_PE, **({"impl": impl} if impl else {}))
    world = simulate(program, 1, topology=text, verify=True)
    return world, verdict_of(world, text)


def verdict_of(world: Simulation, topology: str) -> Verdict:
    sips = len(world.done.sips)
    return verify(
        world.records,
        world.written,
        world.contents,
        AddressMap(parse_topology(topology, "topology", sips)),
    )


def wrong(component: str) -> str:
    return f"tests.support.wrong_components:{component}"


def test_a_pe_computes_the_results_of_its_log() -> None:
    world, verdict = run_layer()
    assert verdict.problems == ()
    assert {figures.memory for figures in verdict.memories} == {"hbm", "tcm"}
    assert all(figures.worst_eps == 0 for figures in verdict.memories)
    assert {record.name for _, record in world.of("pe_math")} == {
        "add",
        "gelu",
        "mul",
        "trans",
        "softmax",
        "cast",
    }
    assert verdict.operations == sum(
        1 for records in world.records.values() for record in records if record.dtype
    )


@pytest.mark.parametrize(
    ("kind", "component", "operation"),
    [
        ("pe_math", "WrongMath", "sip 0 cube0.pe0.pe_math 'trans'"),
        ("pe_gemm", "WrongGemm", "sip 0 cube0.pe0.pe_gemm 'gemm'"),
        ("pe_dma", "DroppingDma", "sip 0 cube0.pe0.pe_dma 'load'"),
        ("hbm_ctrl", "LeakyHbm", "sip 0 cube0.pe0.pe_dma 'load'"),
    ],
)
def test_a_wrong_component_is_detected(kind: str, component: str, operation: str) -> None:
    _, verdict = run_layer(**{kind: wrong(component)})
    assert not verdict.passed
    first, buffer = verdict.problems
    assert first.startswith(operation)
    assert " differ; element " in buffer


@pytest.mark.parametrize("dtype", [torch.float16, torch.int32], ids=str)
def test_values_that_pass_through_queues_between_sips_are_verified(dtype: dtypes.DType) -> None:
    def program(rank: int) -> None:
        torch.distributed.init_process_group("ahbm", algorithm="ring")
        torch.distributed.all_reduce(torch.from_numpy((np.arange(33) + rank).astype(dtype.numpy)))

    text = variant_text(**ONE_PE)
    world = simulate(program, 3, topology=text, verify=True)
    verdict = verdict_of(world, text)
    assert verdict.problems == ()
    sent = world.of("pe_dma", "ipcq_send")
    assert sent
    # One record with the address of the neighbouring value.
    sip, record = sent[0]
    (source,) = record.inputs
    assert isinstance(source, Operand)
    elsewhere = replace(record, inputs=(replace(source, address=source.address + dtype.itemsize),))
    world.records[sip][world.records[sip].index(record)] = elsewhere
    assert "pe_dma 'ipcq_send'" in verdict_of(world, text).problems[0]


def test_the_result_of_a_run_does_not_depend_on_its_verification() -> None:
    def program(_rank: int) -> None:
        torch.from_numpy(np.ones(100, np.float32))

    text = variant_text(**ONE_PE)
    plain, verified = (
        simulate(program, 1, topology=text),
        simulate(program, 1, topology=text, verify=True),
    )
    assert plain.digests == verified.digests
    assert (plain.written, plain.contents) == ({}, [])
    assert bytes(verified.written[0]) == np.ones(100, np.float32).tobytes()
    assert b"".join(data for _, data in verified.contents) == np.ones(
        100, np.float32
    ).tobytes().strip(b"\0")


def test_every_element_type_is_replayed() -> None:
    types = (dtypes.int64, dtypes.uint8, dtypes.float64, dtypes.boolean, dtypes.float32)

    def kernel(*pointers: tl.Pointer) -> None:
        for source in pointers:
            block = tl.load(source, 40)
            if block.dtype != dtypes.boolean:
                block = (block + block) * 3
            for target in pointers:
                tl.store(target + 40, tl.maximum(block, block).to(target.dtype))
            total = tl.sum(block)[None]
            tl.store(source + 80, total.to(source.dtype))

    def program(_rank: int) -> None:
        values = np.random.default_rng(5).integers(-(1 << 40), 1 << 40, 100)
        tensors = [torch.tensor(values, dtype=dtype) for dtype in types]
        torch.launch("types", kernel, *tensors)
        torch.ahbm.synchronize()

    text = variant_text(**ONE_PE)
    verdict = verdict_of(simulate(program, 1, topology=text, verify=True), text)
    assert verdict.passed, verdict


def test_a_race_of_the_program_is_named_where_its_data_differ() -> None:
    def racy(x: tl.Pointer, y: tl.Pointer) -> None:
        if tl.program_id(0) == 0:
            tl.store(y, tl.load(x, LONG))
        else:
            # One of them is at memory while the load lasts.
            for part in range(40):
                tl.store(x + LONG - (part + 1) * 16, tl.full(16, 2.0, dtypes.float32))

    def program(_rank: int) -> None:
        x, y = (torch.ones(LONG, dp=DPPolicy(pe="row_wise", num_cubes=1)) for _ in range(2))
        torch.launch("racy", racy, x, y)
        torch.ahbm.synchronize()

    text = variant_text(**ONE_PE | {"cube__pe_layout__pe_per_corner": 2})
    world = simulate(program, 1, topology=text, verify=True, record=True)
    verdict = verdict_of(world, text)
    assert not verdict.passed
    records = simulated_records(1, world.time_ps, world.rows, world.texts)
    race, *others = with_races(verdict, records).problems
    line = racy.__code__.co_firstlineno
    assert race.startswith("the program has 1 race, by which its data depend on the machine: ")
    assert f"test_verify_simulations.py:{line + 2}" in race
    assert f"test_verify_simulations.py:{line + 6}" in race
    assert tuple(others) == verdict.problems


def test_a_wrong_component_is_named_alone_where_the_program_has_no_race() -> None:
    world = simulate(lambda _rank: None, 1, topology=variant_text(**ONE_PE), record=True)
    records = simulated_records(1, world.time_ps, world.rows, world.texts)
    verdict = Verdict(passed=False, operations=1, memories=(), problems=("a buffer differs",))
    assert with_races(verdict, records) == verdict
