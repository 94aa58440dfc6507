"""Kernels with many alike instructions, written in few lines.

    repeat 256
        B-:R-:W0:-:S02  LDS R2, [R20+{4n}]         # k.cu:6 | selected=1
        B0:R-:W-:-:S04  FFMA R3{n%4}, R2, R3, R3{n%4}   # k.cu:7 | selected=1
    end

The lines between are written as often as said, n counting from 0: ``{n}`` is n, ``{4n}`` is 4·n in hexadecimal (an offset), ``{n%4}`` is the
remainder (for registers in turn).
"""

import re

_REPEAT = re.compile(r"[ \t]*repeat (?P<times>\d+)\n(?P<body>.*?)^[ \t]*end$\n?", re.MULTILINE | re.DOTALL)
_NUMBER = re.compile(r"\{(?P<factor>\d*)n(?:%(?P<divisor>\d+))?\}")


def expand_repeats(text: str) -> str:
    """A kernel with its repetitions written out.

    >>> print(expand_repeats("repeat 2\\nLDS R{n%2}, [R9+{16n}]\\nend\\nEXIT"))
    LDS R0, [R9+0x0]
    LDS R1, [R9+0x10]
    EXIT

    Raises:
        ValueError: a repetition without an end.
    """
    expanded = _REPEAT.sub(lambda found: "".join(_write(found["body"], n) for n in range(int(found["times"]))), text)
    if re.search(r"^[ \t]*(repeat \d+|end)$", expanded, re.MULTILINE):
        raise ValueError("a repetition has no end, or an end no repetition")
    return expanded


def _write(body: str, n: int) -> str:
    def number(found: re.Match[str]) -> str:
        if found["divisor"]:
            return str(n % int(found["divisor"]))
        return hex(int(found["factor"]) * n) if found["factor"] else str(n)

    return _NUMBER.sub(number, body)
