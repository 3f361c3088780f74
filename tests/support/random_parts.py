"""Random programs on machines whose parts differ.

`python -m tests.support.random_parts FIRST COUNT` prints a line for each of `COUNT` seeds.
"""

import sys

from tests.support.random_programs import report

if __name__ == "__main__":
    begin, count = map(int, sys.argv[1:])
    for number in range(begin, begin + count):
        print(report(number, differ=True))
