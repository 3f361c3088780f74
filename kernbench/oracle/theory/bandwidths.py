"""Bandwidths and peak rates that follow from several numbers of the topology file, exact."""

from fractions import Fraction
from math import prod

from kernbench.oracle.theory.roofline import compute_bound_ps
from kernbench.oracle.theory.topology_file import TopologyFile


def channel_gbs(file: TopologyFile) -> Fraction:
    """Effective bandwidth of one HBM pseudo channel: peak bandwidth x efficiency.

    In model `banks`, in which rows and refresh take time of their own, the peak bandwidth.
    """
    peak_gbs = file.number("hbm.pc_bw_gbs")
    if file["hbm.model"] == "banks":
        return peak_gbs
    return peak_gbs * file.number("cube.hbm_ctrl.efficiency")


def slice_gbs(file: TopologyFile) -> Fraction:
    """Effective bandwidth of one HBM slice: number of pseudo channels x that of each."""
    return file["hbm.num_pcs"] * channel_gbs(file)


def own_memory_gbs(file: TopologyFile) -> Fraction:
    """Bandwidth of a PE, reads and writes together, between its own slice and its TCM.

    The slice and the port of the TCM are each shared by both directions. The crossbar link between
    them has this bandwidth limit separately for each direction (`xbar.to_hbm_bw_gbs`).
    """
    # Each byte passes both: a read leaves the slice and enters the TCM, a write the reverse.
    return min(slice_gbs(file), file.number("pe.tcm.bw_gbs"))


def own_read_gbs(file: TopologyFile) -> Fraction:
    """The fastest stream in one direction between a PE's own slice and its TCM."""
    # One direction only, so the shared servers have their full bandwidth for it.
    return min(own_memory_gbs(file), file.number("xbar.to_hbm_bw_gbs"))


def gemm_bound_ps(file: TopologyFile, macs: int, pes: int = 1) -> Fraction:
    """The time of multiply-accumulate operations at the peak of the GEMM engines of `pes` PEs."""
    clock_ghz = file.number("pe.gemm.clock_ghz")
    return compute_bound_ps(macs, peak_macs_per_cycle(file) * pes, clock_ghz)


def peak_macs_per_cycle(file: TopologyFile) -> int:
    """Multiply-accumulate operations of the GEMM engine per cycle at its peak.

    A systolic array does one in each of its cells.
    """
    engine = file["pe.gemm"]
    array = engine["rows"], engine["cols"]
    return peak_macs_of(engine["model"], engine["macs_per_cycle"], array)


def peak_macs_of(model: str, macs_per_cycle: int, array: tuple[int, int]) -> int:
    """The same for an engine of the model, whose array has rows and columns."""
    return prod(array) if model == "systolic_os" else macs_per_cycle
