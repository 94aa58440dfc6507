"""Estimated callers of library code inlined without call sites: :func:`find_callers`.

Triton compiles functions of its library into the kernel and keeps only their own lines. What such code yields is used by the line that calls it, so
the line whose instructions most often follow it is taken for the caller; or, where that line comes after one that calls something and has no
instruction of its own, that one. It is an estimate and is shown as one.
"""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from gpa_lsp.foundation.locations import SourceLine
from gpa_lsp.foundation.ownership import is_library_file

if TYPE_CHECKING:  # numpy must not be imported before an editor has its answer to initialize
    from gpa_lsp.report.model import KernelReport

Place = tuple[str, int]  # File as compiled, and line
Body = tuple[str, Sequence[int]]  # as :func:`~gpa_lsp.report.kernel_lines.find_body` gives it
ReadLine = Callable[[int], str | None]  # the text of a line of the body's file, 1-based; None where it is not known

_LEAST_RATIO = 0.005  # Of the kernel's samples; less is not worth guessing for

_CALL = re.compile(r"(?<!def )\b[A-Za-z_][\w.]*\(")
_DEFINITION = re.compile(r"\s*(?:async\s+)?def\s")


def find_callers(kernel: "KernelReport", body: Body | None, read_line: ReadLine) -> dict[Place, tuple[int, float]]:
    """Lines of foreign files in the kernel's own code → the line of its body that probably calls them, and their samples."""
    if body is None:
        return {}
    home, own_lines = body
    if all(chain[-1].file == home or chain[-1].line <= 0 for chain in kernel.instructions.chains):
        return {}  # as nearly every kernel is
    sums, followers = _follow(kernel, home)
    least = max(_LEAST_RATIO * kernel.total_samples, 1)
    return {
        place: (_find_call(_choose(followers[place]), own_lines, read_line), samples)
        for place, samples in sums.items()
        if samples >= least and followers[place]
    }


def find_library_callers(
    kernel: "KernelReport", read_line: Callable[[str, int], str | None]
) -> dict[SourceLine, SourceLine]:
    """Library lines → the user's lines that probably call them.

    Args:
        read_line: the text of a line of a file as compiled, 1-based; None where it is not known.
    """
    from gpa_lsp.report.kernel_lines import find_body

    body = find_body(kernel)
    if body is None or is_library_file(body[0]):
        return {}
    home = body[0]
    return {
        SourceLine(file=file, line=line): SourceLine(file=home, line=caller)
        for (file, line), (caller, _) in find_callers(kernel, body, lambda line: read_line(home, line)).items()
        if is_library_file(file)
    }


def _choose(followers: Counter[int]) -> int:
    return max(followers, key=lambda line: (followers[line], -line))


def _follow(kernel: "KernelReport", home: str) -> tuple[dict[Place, float], dict[Place, Counter[int]]]:
    """Samples of each foreign line in the kernel's own code, and how often each line of its file follows it."""
    columns = kernel.instructions
    own = columns.functions.index(kernel.mangled_name) if kernel.mangled_name in columns.functions else -1
    samples = columns.all_samples.sum(axis=1).tolist()
    sums: dict[Place, float] = {}
    followers: dict[Place, Counter[int]] = {}
    waiting: Place | None = None
    for row, (function, chain) in enumerate(
        zip(columns.function_index.tolist(), columns.chain_index.tolist(), strict=True)
    ):
        if function != own or chain < 0:
            continue
        outermost = columns.chains[chain][-1]
        if outermost.line <= 0:
            continue
        if outermost.file == home:
            if waiting is not None:
                followers[waiting][outermost.line] += 1
            waiting = None
            continue
        waiting = (outermost.file, outermost.line)
        followers.setdefault(waiting, Counter())
        sums[waiting] = sums.get(waiting, 0.0) + samples[row]
    return sums, followers


def _find_call(follower: int, own_lines: Sequence[int], read_line: ReadLine) -> int:
    """The calling line, given the line that follows."""
    before = max((line for line in own_lines if line < follower), default=follower)
    for line in range(follower - 1, before, -1):
        text = (read_line(line) or "").partition("#")[0]
        if _CALL.search(text) and not _DEFINITION.match(text):
            return line
    return follower
