"""Which operators have the same results on the host of every processor.

PyTorch has code for each vector unit, and its libraries for linear algebra and FFTs have it as
well: sums have another order, and exponentials other last bits. Operators that move or compare
elements, and those that compute with integers alone, have one result. An operator that is not
listed may differ between processors: the closing line of a run names it.
"""

PORTABLE = frozenset(
    {
        *("_efficientzerotensor", "_unique", "_unique2", "unique_consecutive", "unique_dim"),
        *("nonzero", "masked_select", "masked_scatter", "masked_scatter_", "bucketize"),
        *("searchsorted", "sort", "argsort", "msort", "kthvalue", "median", "mode", "isin"),
        *("equal", "signbit", "frac", "trunc", "frexp", "nextafter", "copysign", "heaviside"),
        *("gcd", "lcm", "bitwise_left_shift", "bitwise_right_shift", "logical_xor", "bincount"),
        *("gather", "take", "put", "put_", "scatter"),
        *("reflection_pad1d", "reflection_pad2d", "reflection_pad3d", "replication_pad1d"),
        *("replication_pad2d", "replication_pad3d", "repeat_interleave"),
        *("fmax", "fmin", "cummax", "cummin", "aminmax", "nan_to_num", "randperm"),
        *("max_pool2d_with_indices", "max_pool3d_with_indices", "adaptive_max_pool2d"),
        *("adaptive_max_pool3d", "max_unpool2d", "max_unpool3d", "fractional_max_pool2d"),
        *("channel_shuffle", "upsample_nearest1d", "upsample_nearest2d", "upsample_nearest3d"),
    }
)
"""Operators without their overloads."""
