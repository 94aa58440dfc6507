"""Whether a kernel is stalled on a line: :class:`LineWait`."""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from gpa_lsp.foundation.numbers import format_percent

# Of a kernel's samples: what less than this waits for, other work hides
HIDDEN_RATIO = 0.01


class LineWait(Struct, frozen=True, kw_only=True, order=True):
    """How much of a kernel is stalled on a line; the order is by that.

    >>> LineWait(ratio=0.004, is_simulated=True, file="k.cu", line=7).describe()
    'Hidden: 0.4 % of the samples are stalled on this line (simulated).'
    """

    ratio: float  # of the kernel's samples those blamed on the line, 0..1
    is_simulated: bool  # else they were measured
    file: str  # as compiled
    line: int  # 1-based

    @property
    def is_hidden(self) -> bool:
        """Other work goes on meanwhile."""
        return self.ratio < HIDDEN_RATIO

    def describe(self) -> str:
        """One sentence."""
        how = "simulated" if self.is_simulated else "measured"
        return f"{'Hidden: ' if self.is_hidden else ''}{format_percent(self.ratio)} of the samples are stalled on this line ({how})."


def find_wait(waits: Sequence[LineWait], file: str, line: int) -> LineWait | None:
    """How much of a kernel is stalled on a line, of all that is known of the kernel; None where nothing is."""
    known = (one for one in waits if (one.file, one.line) == (file, line))
    return next(known, replace(waits[-1], ratio=0.0, file=file, line=line) if waits else None)
