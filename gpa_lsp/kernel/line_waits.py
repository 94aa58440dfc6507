"""Share of a kernel's samples that are stalled on a line: :class:`LineWait`."""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from gpa_lsp.foundation.numbers import format_percent

# Share of a kernel's samples below which other work hides a stall
HIDDEN_RATIO = 0.01


class LineWait(Struct, frozen=True, kw_only=True, order=True):
    """Share of a kernel's samples that are stalled on a line; ordered by that share.

    >>> LineWait(ratio=0.004, is_simulated=True, file="k.cu", line=7).describe()
    'Hidden: 0.4 % of the samples are stalled on this line (simulated).'
    """

    ratio: float  # part of the kernel's samples that is attributed to the line, 0..1
    is_simulated: bool  # else they were measured
    file: str  # as compiled
    line: int  # 1-based

    @property
    def is_hidden(self) -> bool:
        """Whether other work hides the stall."""
        return self.ratio < HIDDEN_RATIO

    def describe(self) -> str:
        """One sentence."""
        how = "simulated" if self.is_simulated else "measured"
        return f"{'Hidden: ' if self.is_hidden else ''}{format_percent(self.ratio)} of the samples are stalled on this line ({how})."


def find_wait(waits: Sequence[LineWait], file: str, line: int) -> LineWait | None:
    """The share of one line, 0 where the kernel's shares do not list it; None where ``waits`` is empty."""
    known = (one for one in waits if (one.file, one.line) == (file, line))
    return next(known, replace(waits[-1], ratio=0.0, file=file, line=line) if waits else None)
