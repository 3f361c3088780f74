"""The part of the schema of `topology.yaml` that describes an HBM slice, key `hbm`."""

from typing import Annotated, Literal

from msgspec import Meta

from runtime.core.config.section import Section
from runtime.model.schema.draws import among
from runtime.model.schema.meanings import WHAT_IF, ActsOn
from runtime.model.schema.quantities import Count, Gbs, Ns


class HbmBanks(Section, frozen=True):
    """The banks of a pseudo channel, for model `banks`; the timings are those of JEDEC."""

    count: Annotated[
        int, Meta(ge=1, le=1024), among(1, 2, 4, 16), ActsOn("banks of a pseudo channel")
    ]
    row_bytes: Annotated[
        int, Meta(ge=8, le=1 << 20), among(512, 1024, 2048), ActsOn("a row of a bank")
    ]
    t_rcd_ns: Annotated[Ns, ActsOn("from the activation of a row to its first column")]
    t_rp_ns: Annotated[Ns, ActsOn("precharge")]
    t_ras_ns: Annotated[Ns, ActsOn("from activation to precharge")]
    t_cl_ns: Annotated[Ns, ActsOn("from column to data")]
    t_rrd_ns: Annotated[Ns, ActsOn("between two activations of a channel")]
    t_faw_ns: Annotated[Ns, ActsOn("a window in which a channel activates at most four rows")]
    t_refi_ns: Annotated[Ns, among(0.0, 700.0, 3900.0), ActsOn("from refresh to refresh; 0: none")]
    t_rfc_ns: Annotated[Ns, ActsOn("a refresh of all banks")]
    controller_ns: Annotated[Ns, ActsOn("controller and PHY, for a read")]


class Hbm(Section, frozen=True):
    """One HBM slice: there is one per PE."""

    burst_bytes: Annotated[
        int,
        Meta(ge=8, le=1 << 20),
        among(64, 128, 256, 512),
        ActsOn("unit of striping over pseudo channels"),
    ]
    num_pcs: Annotated[
        int, Meta(ge=1, le=1024), among(1, 4, 8, 16), ActsOn("pseudo channels of a slice")
    ]
    pc_bw_gbs: Annotated[Gbs, ActsOn("a pseudo channel"), WHAT_IF]
    slice_gib: Annotated[Count, ActsOn("a slice; there is one per PE")]
    model: Annotated[
        Literal["channels", "banks"],
        ActsOn("channels: keys of cube.hbm_ctrl; banks: keys of hbm.banks"),
    ]
    banks: HbmBanks
