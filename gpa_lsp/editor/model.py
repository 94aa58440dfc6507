"""Parts of answers for which the protocol has no type: jumps and marks.

All else is of the protocol's own types (lsprotocol). Lines count from 0 there and columns in the code units that the client chose, because that is
how editors ask and are answered. :mod:`~gpa_lsp.editor.lines.positions` is the only place that counts them; everywhere else a line is 1-based, and
a column does not exist.
"""

from enum import Enum

from lsprotocol.types import Location
from msgspec import Struct


class Jump(Struct, frozen=True, kw_only=True):
    """Cause or victim of a stall."""

    location: Location  # the whole text of the line
    text: str  # a few words about it, for a list to choose from
    ratio: float  # of the kernel's samples, 0 to 1
    samples: float  # of the pair
    # the causing (suffering) instruction in the kernel's SASS document; None when it is not known
    sass: Location | None = None


class MarkKind(Enum):
    """Meaning of a line's share."""

    SUFFERS = "suffers"  # The samples were taken here; or it is no samples that are shown
    CAUSES = "causes"  # They were taken elsewhere and are blamed on this line


class Origin(Enum):
    """Source of a number."""

    MEASURED = "measured"
    SIMULATED = "simulated"
    EMULATED = "emulated"  # or predicted from what was emulated


class Freshness(Enum):
    """Relation of a number to the line as it is now."""

    CURRENT = "current"
    UNVERIFIED = "unverified"  # Nobody can tell whether the source is what was measured
    STALE = "stale"  # The line was edited since, and carries no number


class Mark(Struct, frozen=True, kw_only=True):
    """The one mark of a line: hints, lists, heat and SASS documents show it; hovers and diagnostics say more of the same line."""

    line: int  # 1-based, as the document is now
    kind: MarkKind = MarkKind.SUFFERS  # what its share means
    share_ratio: float = 0.0  # of the samples of the kernel it is hottest in, or of what else is shown
    text: str = ""  # the share with its noun, and what it is mostly, in a few words
    kernel: str = ""  # short name of that kernel
    origin: Origin = Origin.MEASURED
    freshness: Freshness = Freshness.CURRENT
