"""Stand-ins for headers of NVIDIA's samples and libraries that sources include and that are not installed.

Those here are for building programs, too, and those in ``cublas``, ``cufft`` and ``random``, where the library is not installed. Those in ``device``
have less than the real ones: kernels can be looked at with them, and nothing is built with them.
"""

from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parent  # To search behind everything else, where a program is built
RANDOM = "curand_kernel.h"
JUMPS = "curand_jumps.h"  # What it includes, as write_jumps has it
# Characteristic polynomial of a step of XORWOW over GF(2), bit i the coefficient of x**i: the shortest recurrence of its bits (Berlekamp, Massey).
_STEP = 0x100000F0E0F3C0035000621210861003000060001
_DEGREE = 160
_SEQUENCE_BITS = 67  # numbers of a sequence before the next one begins, as a power of two
_ROWS = 64  # bits of a count


@cache
def read_absent_header(name: str) -> str | None:
    """Stand-in for a header, by its name in the ``#include``, with a ``#line`` of its own path; None if there is none."""
    if not name.replace(".", "_").isidentifier():
        return None
    paths = (FOLDER / name, FOLDER / ("random" if name == RANDOM else "device") / name)
    found = next((path for path in paths if path.suffix == ".h" and path.is_file()), None)
    if found is None:
        return None
    text = found.read_text(encoding="utf-8").replace(f'#include "{JUMPS}"', write_jumps())
    return f'#line 1 "{found.as_posix()}"\n{text}'


def write_jumps() -> str:
    """C rows of XORWOW's jump polynomials: x to the number of steps, modulo the polynomial of one step, in 32-bit words.

    Row k jumps 2**k numbers, row 64 + k as many sequences.
    """
    rows, power = [], 2
    for bit in range(_SEQUENCE_BITS + _ROWS):
        if bit < _ROWS or bit >= _SEQUENCE_BITS:
            words = ", ".join(f"0x{power >> 32 * word & 0xFFFFFFFF:08x}" for word in range(_DEGREE // 32))
            rows.append(f"{{{words}}}")
        power = int(f"{power:b}", 4)  # its square has each bit in twice the place
        while power >> _DEGREE:
            power ^= _STEP << power.bit_length() - _DEGREE - 1
    return ", ".join(rows)
