"""A hand-made run for the page of `kernbench web`: two SIPs, 8,192 ps, bins of 1,024 ps."""

import json
from pathlib import Path

from tests.support.run_tables import command, op, program, sign, step, tables, write_run
from tests.support.topologies import variant_text

TOTAL_PS, BIN_PS = 8192, 1024
LINK = "cube0.router.r0c0->cube0.router.r0c1"
HBM = 1 << 37
LOADS = (
    # bin, bytes, busy, queued, packets
    (0, 256, 1000, 0, 1),
    (1, 512, 512, 30, 2),
    (7, 100, 64, 5, 1),
)


def _loads(link: str, kind: str, scale: int) -> list[dict[str, object]]:
    return [
        {
            "link": link,
            "kind": kind,
            "bin": at,
            "nbytes": nbytes * scale,
            "busy_ps": busy_ps // scale,
            "queued_ps": queued_ps,
            "packets": packets,
        }
        for at, nbytes, busy_ps, queued_ps, packets in LOADS
    ]


def write_page_run(directory: Path, kernel: str = "product") -> Path:
    """The directory of the run. SIP 0 executes `kernel` on PE 0 of cube 0; SIP 1 has a rank program
    only.
    """
    here = {"cube": 0, "pe": 0}
    ops = [
        op("pe_dma", "load", 1000, 3000, read_address=HBM, nbytes=4096, link=LINK, link_ps=300)
        | {"step": 100, **here},
        op("pe_gemm", "gemm", 3000, 5000, nbytes=2048, requested_ps=2500, step=101, **here),
        op("pe_dma", "store", 5000, 6000, address=HBM, nbytes=2048, step=102, **here),
    ]
    programs = [
        program(1, 1000, 6000, kernel=kernel, **here),
        program(0, 0, TOTAL_PS, kernel="rank"),
    ]
    steps = [
        step(1, "load", 1000, 3000, issued_ps=1100, cause="operand", line="k.py:3", released_by=0),
        step(1, "dot", 3000, 5000, cause="engine", line="k.py:4", released_by=1),
        step(1, "store", 5000, 6000, cause="operand", line="k.py:5", released_by=2),
    ]
    commands = [
        command(1, "", 0, 0, 500, why="queues"),
        command(2, "KernelLaunchMsg", 100, 500, 2000, after=1, why=f"kernel {kernel!r}"),
    ]
    links = _loads(LINK, "link", 1) + _loads("cube0.pe0.hbm_ctrl.pc0", "memory", 1)
    sips = [
        tables(ops, programs, steps, commands, [*links, *_loads("ucie.sip1", "port", 2)]),
        tables([op("host", "IpcqInitMsg", 0, 500)], [program(0, 0, TOTAL_PS)]),
    ]
    made = write_run(directory, sips, TOTAL_PS, arguments={"m": 32}, bench="hand-made")
    # One cube: every page loads sooner.
    one_cube = variant_text(sip__cube_mesh={"w": 1, "h": 1})
    (made / "topology.yaml").write_text(one_cube)
    # (32, 16) times (16, 16): 2 x 32 x 16 x 16 operations.
    line = {"sip": 0, "index": 1, "engine": "pe_gemm", "shape": [32, 16]}
    inputs = [{"shape": [32, 16]}, {"shape": [16, 16]}]
    (made / "oplog.jsonl").write_text(json.dumps(line | {"inputs": inputs}, separators=(",", ":")))
    sign(made)
    return made
