"""Edits of the vector engine: the stream of vectors, the costs of functions, shared engines."""

from tests.mutants.mutant import Mutant

ENGINE = "sip_node/chip/pe/math.py"
STREAM = "sip_node/chip/pe/vector_stream.py"
PASSES = "runtime/language/passes.py"

MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        name="vector-fetch-not-pipelined",
        file=ENGINE,
        old="self._fetch.serialisation_ps(stream.fetched(vector))",
        new="self._fetch.serialisation_ps(stream.fetched_bytes)",
        breaks="the engine begins with the first vector, not with the last",
        noticed_by="v.",
    ),
    Mutant(
        name="vector-store-not-pipelined",
        file=ENGINE,
        old="self._engine.at(start_ps + first_ps, self._store_result, operation, end_ps)",
        new="self._engine.at(self.free_ps, self._store_result, operation, end_ps)",
        breaks="the first result is stored while the engine computes the others",
        noticed_by="v.",
    ),
    Mutant(
        name="vector-last-store-free",
        file=ENGINE,
        old="left[vector] + last_ps",
        new="left[vector]",
        breaks="the last vector is stored after it was computed",
        noticed_by="v.",
    ),
    Mutant(
        name="vector-no-bends",
        file=STREAM,
        old="(*ends, *(end + 1 for end in ends), self.count)",
        new="(self.count,)",
        breaks="a stream is held up where an operand ends, not only at its ends",
        noticed_by="v.",
    ),
    Mutant(
        name="vector-eight-bytes-in-a-lane",
        file=STREAM,
        old="max(1, item_bytes(block.dtype) // _LANE_BYTES)",
        new="1",
        breaks="an element of 8 bytes takes two lanes",
        noticed_by="v.",
    ),
    Mutant(
        name="vector-tree-of-one-more-level",
        file=ENGINE,
        old="(math.lanes - 1).bit_length()",
        new="math.lanes.bit_length()",
        breaks="a tree over n lanes has ceil(log2 n) levels",
        noticed_by="v.",
    ),
    Mutant(
        name="vector-reduction-streams-out",
        file=ENGINE,
        old="if step.reduces:\n            end_ps",
        new="if step.after:\n            end_ps",
        breaks="a reduction has no result before its last vector",
        noticed_by="v.",
    ),
    Mutant(
        name="vector-softmax-divides-for-free",
        file=PASSES,
        old='reduces=True, after=("div",)',
        new="reduces=True",
        breaks="softmax takes the reciprocal of its sums",
        noticed_by="v.",
    ),
    Mutant(
        name="vector-comparison-as-bitwise",
        file=PASSES,
        old='dict.fromkeys(COMPARISONS, "compare")',
        new='dict.fromkeys(COMPARISONS, "bitwise")',
        breaks="a comparison has a cost of its own",
        noticed_by="v.",
    ),
    Mutant(
        name="vector-cat-fetches-side-by-side",
        file=ENGINE,
        old='VectorStream.joined if name == "cat" else VectorStream',
        new="VectorStream",
        breaks="the pieces of a concatenation are fetched one after the other",
        noticed_by="v.",
    ),
    Mutant(
        name="vector-fetch-port-shared-by-nobody",
        file=ENGINE,
        old="fetched_ps, _ = self._fetch.reserve(",
        new="_, _ = self._fetch.reserve(",
        breaks="operands wait at the fetch port for the tiles of a product",
        noticed_by="v.",
    ),
    Mutant(
        name="vector-store-port-shared-by-nobody",
        file=ENGINE,
        old="self._engine.at(max(stored_ps, end_ps), self._end, operation)",
        new="self._engine.at(end_ps, self._end, operation)",
        breaks="results wait at the store port for the tile of a product",
        noticed_by="v.",
    ),
    Mutant(
        name="vector-engine-takes-two-at-once",
        file=ENGINE,
        old="max(arrivals[0][0], self.free_ps), 1",
        new="arrivals[0][0], 1",
        breaks="an operation waits until the engine has finished the one before",
        noticed_by="v.",
    ),
    Mutant(
        name="vector-epilogue-overtakes",
        file=ENGINE,
        old="start_ps = max(self._engine.now_ps, self.free_ps)",
        new="start_ps = self._engine.now_ps",
        breaks="an epilogue waits for the operation in the engine",
        noticed_by="v.",
    ),
)
