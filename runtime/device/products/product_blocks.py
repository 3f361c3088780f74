"""The blocks of the result of a matrix product that each PE computes."""

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

from runtime.device.kernels.products import ProductOperand, ScratchPlan
from runtime.device.memory.stored_tensor import StoredTensor
from runtime.device.products.cube_mesh import CubeMesh
from runtime.device.products.matmul_shape import MatmulShape
from runtime.device.products.product_operands import MatrixPart, parts_of
from runtime.device.products.product_plan import (
    PeMemory,
    PeRates,
    ProductDepth,
    operand_size,
    scratch_plan,
)
from runtime.device.rank.properties import get_device_properties
from runtime.device.rank.rank_state import running_rank
from runtime.device.regions.regions import Pe
from runtime.model.placement import Span


class ResultBlock(NamedTuple):
    """A block of the result on a PE; element (0, 0) of its matrix would be `origin` elements from
    the start of the tensor.
    """

    rows: Span
    columns: Span
    origin: int
    pitch: int


def blocks_of(
    product: MatmulShape,
    result: StoredTensor,
    a: tuple[StoredTensor, ProductOperand],
    b: tuple[StoredTensor, ProductOperand],
    *,
    by_owner: bool,
) -> list[tuple[Pe, ResultBlock]] | None:
    """The blocks of each PE that takes part, where the placement of the result or of an operand
    decides; None where all three are row-major in their memory.
    """
    m, n = product.m, product.n
    parts = parts_of(result, (m, n)) or ()
    if by_owner or not result.is_flat:
        return [
            (pe, ResultBlock(part.rows, part.columns, _origin(part), part.pitch))
            for part in parts
            for pe in part.pes
        ]
    if len(b[1].pieces) > 1:
        owners = _owners(b[0], product.stored_b)
        return [
            (pe, ResultBlock((0, m), span, 0, n))
            for pe, span in zip(owners, _spans(b[1]), strict=True)
        ]
    if len(a[1].pieces) > 1:
        owners = _owners(a[0], product.stored_a)
        return [
            (pe, ResultBlock(span, (0, n), 0, n))
            for pe, span in zip(owners, _spans(a[1]), strict=True)
        ]
    return None


def _origin(part: MatrixPart) -> int:
    return part.offset - part.rows[0] * part.pitch - part.columns[0]


def pe_rates() -> PeRates:
    """The PEs of this SIP, and the rates of each."""
    properties = get_device_properties()
    tile = properties.gemm_tile
    # 1 TFLOPS is 1000 operations a nanosecond.
    step_ns = 2 * prod(tile) / (properties.peak_gemm_tflops_per_pe * 1000)
    return PeRates(properties.pe_count, tile, step_ns, properties.hbm_gbs_per_pe)


def cube_mesh() -> CubeMesh:
    """The cubes of this SIP."""
    topology = running_rank().topology
    mesh = topology.sip.cube_mesh
    return CubeMesh(
        width=mesh.w,
        height=mesh.h,
        pes=topology.pes_per_cube,
        scratch_bytes=topology.kernel_scratch_bytes,
    )


def pe_memory() -> PeMemory:
    """The memories of a PE of this SIP."""
    properties, hbm = get_device_properties(), running_rank().topology.hbm
    return PeMemory(
        properties.kernel_scratch_bytes_per_pe,
        hbm.burst_bytes * hbm.num_pcs,
        properties.hbm_gbs_per_pe,
    )


def block_plans(
    blocks: Sequence[tuple[Span, Span]],
    a: ProductOperand,
    b: ProductOperand,
    depth: tuple[int, int],
) -> list[ScratchPlan]:
    """The panels of blocks of the result, given by rows and columns; `depth` is that of the
    product, and the size of an element of the operands in bytes.
    """
    rates, memory = pe_rates(), pe_memory()
    tile, (length, itemsize) = rates.tile, depth
    sums = ProductDepth(length, tile.k, itemsize)
    return [
        scratch_plan(
            operand_size(a, rows, tile.m),
            operand_size(b, columns, tile.n),
            sums,
            rates.step_ns,
            memory,
        )
        for rows, columns in blocks
    ]


def _owners(tensor: StoredTensor, stored: tuple[int, int]) -> Sequence[Pe]:
    """The first holder of each part, in the order of the pieces of the operand."""
    parts = parts_of(tensor, stored) or ()
    return [part.pes[0] for part in sorted(parts, key=lambda part: (part.rows, part.columns))]


def _spans(operand: ProductOperand) -> Sequence[Span]:
    return [piece.span for piece in operand.pieces]
