"""Ranges of undefined bytes, compared with a set of bytes."""

from random import Random

from kernbench.explain.check.undefined_ranges import (
    UndefinedOrigin,
    UndefinedRange,
    UndefinedRanges,
)

ORIGINS = [UndefinedOrigin(0, number, number) for number in range(3)]


def test_ranges_are_those_of_a_map_of_bytes() -> None:
    random, ranges, expected = Random(0), UndefinedRanges(), dict[int, UndefinedOrigin]()
    for _ in range(2000):
        begin = random.randrange(60)
        end = begin + random.randrange(1, 12)
        if random.random() < 0.5:
            origin = random.choice(ORIGINS)
            ranges.add(UndefinedRange(begin, end, origin))
            expected |= dict.fromkeys(range(begin, end), origin)
        else:
            ranges.remove(begin, end)
            for each in range(begin, end):
                expected.pop(each, None)
        first = random.randrange(60)
        parts = {
            byte: part.origin
            for part in ranges.within(first, first + 20)
            for byte in range(part.begin, part.end)
        }
        assert parts == {b: o for b, o in expected.items() if first <= b < first + 20}
        assert bool(ranges) == bool(expected)
