"""The studies of kernbench: the name, the summary and the flags of each, declared once.

A class has the flags of a study: their types, defaults and texts of `--help`. Nothing of a study is
imported before it runs: the command line needs the names early. A flag may be a list of values,
separated by commas, or the largest of sizes that grow by a factor.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

from runtime.core.bench_registry import Flag, Scalar, Study, StudyOptions, register
from runtime.core.errors import UsageError

if TYPE_CHECKING:
    from kernbench.studies.parameter_study import ParameterStudy

STUDIES = dict[type[Any], str]()
"""The class of each study as `module:class` below this package, by the class of its flags."""

_T = TypeVar("_T", bool, int, float, str)
_F = TypeVar("_F")


def flag(default: _T, text: str) -> _T:
    """A flag of a study; its type is that of the default."""
    return field(default=default, metadata={"help": text})


def study_class(flags: type[Any]) -> "type[ParameterStudy[Any, Any, Any]]":
    """The study with these flags, imported here."""
    module, _, name = STUDIES[flags].partition(":")
    return getattr(import_module(f"{__package__}.{module}"), name)


def declared(name: str, summary: str, study: str) -> Callable[[type[_F]], type[_F]]:
    """Register a study, `module:class` below this package; the decorated class has its flags."""

    def registered(flags: type[_F]) -> type[_F]:
        made: Any = dataclass(frozen=True, kw_only=True)(flags)

        def run(options: StudyOptions, **values: Scalar) -> bool:
            return study_class(made).of(made(**values), options).run(options)

        options = (
            Flag(each.name, made.__annotations__[each.name], default, each.metadata["help"])
            for each in fields(made)
            for default in [getattr(made(), each.name)]
        )
        register(Study(name, summary, tuple(options), run))
        STUDIES[made] = study
        return made

    return registered


@declared(
    "ccl-algorithms",
    "every collective by algorithm, size and number of ranks; "
    "the selection of ccl.yaml that follows; JSON, CSV and figure",
    "ccl_algorithms.study:AlgorithmStudy",
)
class AlgorithmFlags:
    """The flags of `ccl-algorithms`."""

    max_bytes: int = flag(
        524_288, "largest size a rank, bytes; sizes are 2, then go from 128 by factors of 4"
    )


@declared(
    "collective-forms",
    "every collective by number of ranks and size, with one PE and with all PEs a rank, "
    "against its closed form; JSON and figure",
    "collective_forms.study:FormStudy",
)
class FormFlags:
    """The flags of `collective-forms`."""

    ranks: str = flag("2,3,4,8,16", "numbers of ranks, rising, separated by commas")
    max_bytes: int = flag(
        1 << 24, "largest tensor of a rank on one PE, bytes; sizes go from 65536 by factors of 4"
    )
    all_pes_bytes: int = flag(1 << 22, "the same on all PEs, from 262144 on; 0: on one PE only")


@declared(
    "kv-transfer",
    "KV cache from SIPs that prefill to SIPs that decode, with other numbers of heads a SIP: what "
    "it adds to the time to first token, after the prefill and beside it; bounds, shared links",
    "kv_transfer.study:KvTransferStudy",
)
class KvFlags:
    """The flags of `kv-transfer`."""

    pairs: str = flag(
        "1:4,2:2,2:4,4:2", "SIPs of the prefill and of the decode, such as 2:4, with commas"
    )
    tokens: str = flag("512,2048,8192", "tokens of the prompt, rising, with commas")
    orders: str = flag(
        "blocks,mirrored,interleaved",
        "orders of both sides along the SIPs, with commas: blocks, mirrored, interleaved",
    )
    layers: int = flag(2, "layers of the model that are simulated")
    new_tokens: int = flag(
        64, "tokens that the prefill computes, at most all; a prefix cache has those before"
    )
    network: str = flag("ring_1d", "links between SIPs: ring_1d or mesh_2d_no_wrap")


@declared(
    "llama70b-layer",
    "a whole layer of llama-70B, tensor parallel over 1 to 8 SIPs, by part; JSON and figure",
    "llama70b_layer.study:LayerStudy",
)
class LayerFlags:
    """The flags of `llama70b-layer`."""

    context: int = flag(
        8192, "tokens to which a decode attends, the new one among them; a multiple of 128"
    )
    tokens: int = flag(64, "tokens of the prefill, a multiple of 64 up to 4096; 0: decode only")
    sips_list: str = flag("1,2,8", "numbers of SIPs, rising, separated by commas: 1, 2, 4, 8")


@declared(
    "milestone-1h-ccl",
    "all-reduce by size, SIP topology and kind of queue, "
    "against its closed forms and another simulator; JSON, CSV and figures",
    "milestone_1h_ccl.study:CclStudy",
)
class CclFlags:
    """The flags of `milestone-1h-ccl`."""

    max_bytes: int = flag(262_144, "largest size a PE, bytes; sizes go from 256 by factors of 4")


@declared(
    "milestone-1h-gemm",
    "matrix products on one PE, in shapes x stagings: "
    "stage times, utilisation, theory; JSON and figures",
    "milestone_1h_gemm.study:GemmStudy",
)
class GemmFlags:
    """The flags of `milestone-1h-gemm`.

    Of the default shapes two are below one tile, two are cubes, then there are a tall, a wide and a
    deep one, and one that no tile divides. A loaded operand lies in kernel scratch; none of these
    needs more than the smallest scratch, 1 MiB.
    """

    shapes: str = flag(
        "16x32x16,32x32x32,128x128x128,512x512x512,1024x128x64,64x128x1024,64x4096x64,200x200x200",
        "products to simulate, as MxKxN,MxKxN,...",
    )


VALIDATION = "GQA_VALIDATION"
"""Environment variable: `1` runs the validation scale, `0` or nothing the headline scale."""


@declared(
    "milestone-gqa-llama70b",
    "grouped-query attention of llama-70B, prefill and decode of a layer on 1 to 8 SIPs: times, "
    f"parts, bounds; {VALIDATION}=1 checks counts and values on rings of PEs",
    "milestone_gqa_llama70b.headline:HeadlineStudy",
)
class GqaFlags:
    """The flags of `milestone-gqa-llama70b`."""

    prefill: str = flag("512,1024,2048,4096", "tokens of a prefill, rising, separated by commas")
    decode: str = flag("1024,4096,8192", "tokens in the KV cache of a decode, likewise")
    sips_list: str = flag("1,2,4,8", "numbers of SIPs, over which the heads are divided, likewise")
    batch: int = flag(4, "users of the panels with several users")


@declared(
    "moe-all-to-all",
    "tokens to their experts on other SIPs and back, by the skew of the routing, "
    "against the busiest port; JSON and figure",
    "moe_all_to_all.study:MoeStudy",
)
class MoeFlags:
    """The flags of `moe-all-to-all`; a `routing` file replaces those that draw one."""

    ranks: str = flag("2,4,8", "numbers of ranks, from 2 to 8, with commas")
    exponents: str = flag(
        "0,0.5,1,1.5", "exponents of the Zipf law of the routing, with commas; 0 is uniform"
    )
    tokens: int = flag(128, "tokens of a rank")
    hidden: int = flag(2048, "elements of a token, float16")
    experts: int = flag(16, "experts of all ranks")
    top_k: int = flag(2, "experts of a token")
    seed: int = flag(1, "seed of routing, weights and tokens")
    routing: str = flag(
        "", "file with the experts of each token, a line each, instead of a Zipf law"
    )


@declared(
    "ring-attention",
    "attention over sequences divided over 2 to 8 SIPs, keys and values going round the ring: "
    "times, exposed communication, bounds; zig-zag against contiguous chunks",
    "ring_attention.study:RingAttentionStudy",
)
class RingFlags:
    """The flags of `ring-attention`."""

    tokens: str = flag("1024,2048", "tokens of the sequence, rising, separated by commas")
    sips_list: str = flag("2,4,8", "numbers of SIPs, likewise")
    heads: int = flag(4, "heads of the layer, each on one PE of a cube")


def rising_numbers(flag: str, text: str, least: int, most: int) -> tuple[int, ...]:
    """The numbers in `A,B,...`; raises `UsageError` unless they rise, from `least` to `most`."""
    words = [word.strip() for word in text.split(",")]
    # A word with more digits than `most` is no such number, and may be too long to be converted.
    numbers = tuple(
        int(word)
        for word in words
        if word.isdecimal() and len(word) <= len(str(most)) and least <= int(word) <= most
    )
    if len(numbers) < len(words) or list(numbers) != sorted(set(numbers)):
        raise UsageError(
            f"{flag} {text!r}: expected rising numbers from {least} to {most}, separated by commas"
        )
    return numbers


def distinct_values(flag: str, text: str) -> list[str]:
    """The values in `A,B,...`; raises `UsageError` if one stands twice."""
    values = [value.strip() for value in text.split(",")]
    if len(set(values)) < len(values):
        raise UsageError(f"{flag} {text}: each value once")
    return values


def sizes_by_factor(first: int, most: int, factor: int) -> Iterator[int]:
    """`first` and each next size, `factor` times the previous, up to `most`."""
    while first <= most:
        yield first
        first *= factor
