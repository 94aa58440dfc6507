"""What a SASS document is: the text of a kernel's instructions, and which line of it is what."""

from enum import Enum
from typing import TYPE_CHECKING

from msgspec import Struct

from gpa_lsp.editor.snapshot import VisibleKernel
from gpa_lsp.foundation.records import ColumnRecord

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


class Section(Struct, frozen=True, kw_only=True):
    """A part of the document that belongs together; parts nest or are apart, a loop may hold gaps that are not shown as its."""

    kind: SectionKind  # what it is
    name: str  # as its heading names it
    detail: str  # its samples and what they mostly are, in words; empty without samples
    first_line: int  # its heading, 1-based
    last_line: int  # its last line
    first_row: int  # first instruction


class SassDocument(ColumnRecord, frozen=True, kw_only=True):
    """The SASS of one kernel as text of l lines. A line holds one instruction or none, or stands for several that only fill up."""

    uri: str  # ``gpa-sass:///NAME.DIGEST.nvsass``; the same for later measurements of the kernel
    shown: VisibleKernel  # the kernel and its profile
    lines: tuple[str, ...]  # without line ends
    # int32[l], the (first) instruction on each line (the first line is at index 0); -1 for headings, remarks and empty lines
    row_of_line: "npt.NDArray[np.int32]"
    line_of_row: "npt.NDArray[np.int32]"  # int32[n], the 1-based line of each instruction
    # where the instruction's text, ``InstructionColumns.texts`` of its row verbatim, begins on every instruction's line; characters before it
    instruction_column: int
    # characters from the beginning of the remark behind an instruction to the stall reason in it; None where that is not shown
    reason_offset: int | None
    sections: tuple[Section, ...]  # by first line, outer ones first

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


class SassView(Struct, frozen=True, kw_only=True):
    """An open SASS document. Features answer from it and from nothing else."""

    document: SassDocument  # the document whose text the client holds, which may be of an earlier measurement
    positions: "Positions"  # translates lines and columns for the client
    settings: "Settings"  # the options
    places: "PlaceFinder"  # finds measured places on this machine


def is_same_code(one: VisibleKernel, other: VisibleKernel) -> bool:
    """Whether the rows of two measurements are the same instructions."""
    left, right = one.kernel.report.instructions, other.kernel.report.instructions
    return left is right or left.texts == right.texts
