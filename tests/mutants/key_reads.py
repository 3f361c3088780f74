"""Reads of keys of `topology.yaml`, each replaced by the value of the default file."""

from tests.mutants.mutant import Mutant

BANKS = "sip_node/chip/memory/banks.py"
DMA = "sip_node/chip/pe/dma.py"
HBM = "sip_node/chip/memory/hbm.py"
HOST = "sip_node/chip/host/host.py"
IO_CPU = "sip_node/chip/host/io_cpu.py"


def _unread(key: str, file: str, old: str, new: str) -> Mutant:
    return Mutant(
        name=key,
        file=file,
        old=old,
        new=new,
        breaks=f"One core does not read {key} here.",
        noticed_by=key,
    )


READS = (
    _unread(
        "packet_bytes",
        DMA,
        "self._packet_bytes = topology.packet_bytes",
        "self._packet_bytes = 4096",
    ),
    _unread(
        "control_bytes",
        "sip_node/chip/memory/memory_port.py",
        "self._control_bytes = chip.topology.control_bytes",
        "self._control_bytes = 16",
    ),
    _unread(
        "pe.dma.channels",
        DMA,
        "self.idle_channels = topology.pe.dma.channels",
        "self.idle_channels = 8",
    ),
    _unread(
        "pe.dma.outstanding", DMA, "            topology.pe.dma.outstanding,\n", "            16,\n"
    ),
    _unread("pe.dma.overhead_ns", DMA, "topology.pe.dma.overhead_ns", "2.0"),
    _unread("pe.dma.gather_row_ns", DMA, "topology.pe.dma.gather_row_ns", "1.0"),
    _unread(
        "pe.ipcq.overhead_ns",
        "sip_node/chip/pe/ipcq.py",
        "context.topology.pe.ipcq.overhead_ns",
        "1.0",
    ),
    _unread("pe.tcm.bw_gbs", "sip_node/chip/pe/tcm.py", "chip.topology.pe.tcm.bw_gbs", "512"),
    _unread(
        "pe.fetch_store.bw_gbs",
        "sip_node/chip/pe/compute/fetch_store.py",
        "context.topology.pe.fetch_store.bw_gbs",
        "512",
    ),
    _unread(
        "pe.gemm.clock_ghz",
        "sip_node/chip/pe/compute/gemm.py",
        "Clock(topology.pe.gemm.clock_ghz)",
        "Clock(1.0)",
    ),
    _unread(
        "pe.scheduler.tile_buffers",
        "sip_node/chip/pe/pe.py",
        "            topology.pe.scheduler.tile_buffers,\n",
        "            6,\n",
    ),
    _unread("host.launch_overhead_ns", HOST, "ps_from_ns(host.launch_overhead_ns)", "0"),
    _unread("host.copy_overhead_ns", HOST, "ps_from_ns(host.of_a_copy_ns)", "0"),
    _unread(
        "sip.io_chiplet.io_cpu.launch_margin_ns",
        IO_CPU,
        "ps_from_ns(chip.topology.sip.io_chiplet.io_cpu.launch_margin_ns)",
        "50_000",
    ),
    _unread("hbm.burst_bytes", HBM, "topology.hbm.burst_bytes", "256"),
    _unread("hbm.pc_bw_gbs", HBM, "topology.hbm.pc_bw_gbs *", "32 *"),
    _unread("cube.hbm_ctrl.efficiency", HBM, "* topology.cube.hbm_ctrl.efficiency", "* 0.8"),
    _unread(
        "cube.hbm_ctrl.latency_ns",
        "sip_node/chip/memory/storage.py",
        "ps_from_ns(topology.cube.hbm_ctrl.latency_ns)",
        "52_000",
    ),
    _unread("hbm.banks.t_rcd_ns", BANKS, "ps_from_ns(banks.t_rcd_ns)", "19_500"),
    _unread("hbm.banks.t_rp_ns", BANKS, "ps_from_ns(banks.t_rp_ns)", "16_500"),
    _unread("hbm.banks.t_ras_ns", BANKS, "ps_from_ns(banks.t_ras_ns)", "28_500"),
    _unread("hbm.banks.t_rrd_ns", BANKS, "ps_from_ns(banks.t_rrd_ns)", "2_500"),
    _unread("hbm.banks.t_faw_ns", BANKS, "ps_from_ns(banks.t_faw_ns)", "15_000"),
    _unread(
        "noc.router_stages",
        "sip_node/chip/fabric/clocked/clocked_network.py",
        "graph.topology.noc.router_stages",
        "4",
    ),
    _unread(
        "noc.buffer_flits",
        "sip_node/chip/fabric/clocked/clocked_network.py",
        "self._noc.buffer_flits",
        "8",
    ),
    _unread("ns_per_mm", "runtime/model/sip_plan.py", "self.topology.ns_per_mm", "0.01"),
    _unread(
        "xbar.overhead_ns",
        "runtime/model/graph.py",
        "ps_from_ns(ns) for kind, ns in overheads_ns.items()",
        'ps_from_ns(2.0 if kind == "xbar" else ns) for kind, ns in overheads_ns.items()',
    ),
    _unread(
        "cube.sram_to_router_bw_gbs",
        "sip_node/chip/memory/storage.py",
        "chip.topology.cube.sram_to_router_bw_gbs",
        "128",
    ),
)
"""Planted reads of keys: the compiled core has its own of the first three; it shares the others."""
