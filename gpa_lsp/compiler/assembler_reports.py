"""What ``ptxas -v`` says of each function → :class:`~gpa_lsp.compiler.model.AssemblerReport`."""

import re

from gpa_lsp.compiler.model import AssemblerReport

_LOCAL = re.compile(
    r"(?:ptxas\s+\.)?\s*(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads",
)
_NAMED = re.compile(r"ptxas info\s*: (?:Function properties for|Compiling entry function) '?([^'\s]+)'?")
_USED = re.compile(r"ptxas info\s*: Used (\d+) registers")
_MOST_DIGITS = 12


def parse_assembler_reports(output: str) -> tuple[AssemblerReport, ...]:
    r"""The reports in a compiler's output, in its order.

    >>> [found] = parse_assembler_reports("ptxas info    : Function properties for _Z1kv\n"
    ...     "    8 bytes stack frame, 4 bytes spill stores, 12 bytes spill loads\nptxas info    : Used 32 registers, used 0 barriers")
    >>> found.function, found.registers, found.stack_frame_bytes, found.spill_store_bytes, found.spill_load_bytes
    ('_Z1kv', 32, 8, 4, 12)
    """
    found: dict[str, tuple[int | None, int, int, int]] = {}
    name = entry = ""
    for line in output.splitlines():
        if "ptxas" not in line and "bytes stack frame" not in line:
            continue
        if named := _NAMED.match(line):
            name = named[1]
            entry = name if "entry" in line else entry
        elif (local := _LOCAL.match(line)) and name and all(len(digits) <= _MOST_DIGITS for digits in local.groups()):
            frame, stores, loads = (int(digits) for digits in local.groups())
            found[name] = (None, frame, stores, loads)
        elif (used := _USED.match(line)) and len(used[1]) <= _MOST_DIGITS:
            # Said of the kernel, behind the properties of the functions that it calls.
            owner = entry or name
            if owner in found:
                found[owner] = (int(used[1]), *found[owner][1:])
            entry = ""
    return tuple(
        AssemblerReport(
            function=function,
            registers=registers,
            stack_frame_bytes=frame,
            spill_store_bytes=stores,
            spill_load_bytes=loads,
        )
        for function, (registers, frame, stores, loads) in found.items()
    )
