"""What a SASS document is: the text of a kernel's instructions, and which line of it is what."""

from enum import Enum
from typing import TYPE_CHECKING

from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.editor.snapshot import VisibleKernel

if TYPE_CHECKING:  # numpy must not be imported before the client has its answer to initialize
    import numpy as np
    import numpy.typing as npt

    from gpa_lsp.editor.lines.places import PlaceFinder
    from gpa_lsp.editor.lines.positions import Positions
    from gpa_lsp.editor.settings import Settings

SCHEME = "gpa-sass"
LANGUAGE_ID = "nvsass"


class SectionKind(Enum):
    """What a part of the document is."""

    FUNCTION = "function"
    LOOP = "loop"
    BLOCK = "block"


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A part of the document that belongs together; parts nest or are apart, a loop may hold gaps that are not shown as its.

    Attributes:
        kind: what it is.
        name: as its heading names it.
        detail: its samples and what they mostly are, in words; empty without samples.
        first_line: its heading, 1-based.
        last_line: its last line.
        first_row: first instruction.
    """

    kind: SectionKind
    name: str
    detail: str
    first_line: int
    last_line: int
    first_row: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SassDocument:
    """The SASS of one kernel as text of l lines. A line holds one instruction or none, or stands for several that only fill up.

    Attributes:
        uri: ``gpa-sass:///NAME.DIGEST.nvsass``; the same for later measurements of the kernel.
        shown: the kernel and its profile.
        lines: without line ends.
        row_of_line: int32[l], the (first) instruction on each line (the first line is at index 0); -1 for headings, remarks and empty lines.
        line_of_row: int32[n], the 1-based line of each instruction.
        instruction_column: where the instruction's text, ``InstructionColumns.texts`` of its row verbatim, begins on every instruction's line;
            characters before it.
        reason_offset: characters from the beginning of the remark behind an instruction to the stall reason in it; None where that is not shown.
        sections: by first line, outer ones first.
    """

    uri: str
    shown: VisibleKernel
    lines: tuple[str, ...]
    row_of_line: "npt.NDArray[np.int32]"
    line_of_row: "npt.NDArray[np.int32]"
    instruction_column: int
    reason_offset: int | None
    sections: tuple[Section, ...]

    @property
    def text(self) -> str:
        """The whole text; every line ends with a line feed but the last, which is empty."""
        return "\n".join(self.lines)

    def find_row(self, line: int) -> int | None:
        """The instruction on a 1-based line; None when there is none."""
        if not 1 <= line <= len(self.lines):
            return None
        row = int(self.row_of_line[line - 1])
        return None if row < 0 else row

    def find_place(self, row: int) -> tuple[int, int, int]:
        """Where the text of an instruction is: its 1-based line, and the characters before its first and behind its last one."""
        start = self.instruction_column
        return int(self.line_of_row[row]), start, start + len(self.shown.kernel.report.instructions.texts[row])


@dataclass(frozen=True, slots=True, kw_only=True)
class SassView:
    """An open SASS document. Features answer from it and from nothing else.

    Attributes:
        document: the document whose text the client holds, which may be of an earlier measurement.
        positions: translates lines and columns for the client.
        settings: the options.
        places: finds measured places on this machine.
    """

    document: SassDocument
    positions: "Positions"
    settings: "Settings"
    places: "PlaceFinder"


def is_same_code(one: VisibleKernel, other: VisibleKernel) -> bool:
    """Whether the rows of two measurements are the same instructions."""
    left, right = one.kernel.report.instructions, other.kernel.report.instructions
    return left is right or left.texts == right.texts
