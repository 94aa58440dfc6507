"""Static findings about lines of a kernel that was not measured: :class:`StaticFinding`, and the facts that checks look at."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum

import numpy as np
from msgspec import Struct

from gpa_lsp.code.binary.cubin import CompiledLimits
from gpa_lsp.code.binary.opcodes import Access, MemorySpace
from gpa_lsp.code.ptx.model import Space
from gpa_lsp.code.ptx.static_instructions import AccessKind
from gpa_lsp.code.symbolic_accesses.model import SymbolicAccess
from gpa_lsp.diagnosis.advice.naming import find_own_frame
from gpa_lsp.diagnosis.advice.warp_facts import WarpFacts
from gpa_lsp.diagnosis.analyses.static.model import KernelStatics
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.foundation.locations import Frame, InlineChain
from gpa_lsp.foundation.ownership import describe_stand_in, find_frame_in
from gpa_lsp.foundation.prose import Sentence
from gpa_lsp.kernel.dataflow.accesses import mark_accesses
from gpa_lsp.kernel.dataflow.arithmetic import ArithmeticSequence, find_arithmetic_sequences
from gpa_lsp.kernel.dataflow.expansions import Family
from gpa_lsp.kernel.scopes import ScopeTree

# Assumed iterations of each loop around uncounted code: the compilers' customary guess. It only orders findings.
LOOP_WEIGHT = 10.0

MOST_EVIDENCE = 16  # Instructions that a finding shows


_SPACES = {
    Space.GLOBAL: (MemorySpace.GLOBAL, MemorySpace.GENERIC),
    Space.SHARED: (MemorySpace.SHARED, MemorySpace.GENERIC),
}
_ACCESSES = {
    AccessKind.LOAD: (Access.LOAD, Access.COPY),
    AccessKind.STORE: (Access.STORE, Access.COPY),
    AccessKind.ATOMIC: (Access.ATOMIC,),
    AccessKind.REDUCTION: (Access.REDUCTION, Access.ATOMIC),
}


_COSTLY_FACTOR = 4.0  # So many times what an access needs, and more, is costly


class Certainty(Enum):
    """Certainty of a finding; the values are words for people."""

    CERTAIN = "certain"  # The instructions are there, and they do what the finding says
    # The instructions are there; what they come from, or that the remedy applies, is read out of their shape
    LIKELY = "likely"


class Evidence(Struct, frozen=True, kw_only=True):
    """An instruction that shows a finding."""

    function: str  # mangled name of the section it is in
    pc_offset: int  # bytes from the section's start
    text: str  # as disassembled


class StaticFinding(Struct, frozen=True, kw_only=True):
    """One finding in the code of a kernel."""

    check: str  # name of the check that found it
    kernel: str  # mangled name
    file: str | None  # of the line, as compiled; None for code without lines
    line: int | None  # 1-based; None for code without lines
    # the inlined calls through which that line got into the kernel, innermost first; None without lines, and where the line comes from the source and
    # not from an instruction
    chain: InlineChain | None
    message: Sentence  # a sentence or two
    remedy: Sentence  # what to do; may be empty
    certainty: Certainty
    loop_depth: int  # loops around the innermost instruction of it; 0 outside loops. Loops around the call of a function are not known.
    weight: float  # for ordering, larger first: instructions, each times :data:`LOOP_WEIGHT` for every loop around it
    instructions: tuple[Evidence, ...]  # those that show it, by address; at most :data:`MOST_EVIDENCE`
    is_costly: bool = False  # it multiplies what an access costs, so that it matters outside loops too


class StaticFacts(Struct, frozen=True, kw_only=True):
    """Facts about a kernel for static checks."""

    subject: Subject  # the kernel, without samples
    statics: KernelStatics  # its resources and occupancy
    # the bounds of its functions, by mangled name; functions without any are missing
    limits: Mapping[str, CompiledLimits]
    # its requests and branches by its PTX; None where that is not at hand, or could not be followed
    warps: WarpFacts | None = None

    def count_loops(self, row: int) -> int:
        """Loops around a row."""
        scopes: ScopeTree = self.subject.scopes
        return sum(bool(scopes.is_loop[scope]) for scope in scopes.around(int(scopes.innermost[row])))

    def find_frame(self, row: int) -> Frame | None:
        """The user's line of a row, rather in a source that is at hand; None without lines."""
        return self.find_frame_at_hand(self.subject.rows.chain(row)) or find_own_frame(self.subject, row)

    def find_frame_and_header(self, row: int) -> tuple[Frame | None, str]:
        """The frame of :meth:`find_frame`, and which of our stand-ins for headers the row is of; empty for none."""
        return self.find_frame(row), describe_stand_in(self.subject.rows.chain(row))

    def find_frame_at_hand(self, chain: InlineChain | None) -> Frame | None:
        """The user's line of a chain in a source that is at hand; None where there is none."""
        return find_frame_in(chain, lambda file: self.subject.read_text(file) is not None)

    def group_by_line(self, rows: Iterable[int]) -> tuple[tuple[int, ...], ...]:
        """Rows of one source line together, by their first row, apart from those of our stand-ins for headers; rows without a line stay alone."""
        groups: dict[object, list[int]] = {}
        for row in rows:
            frame, stand_in = self.find_frame_and_header(row)
            groups.setdefault((-row - 1 if frame is None else frame.source_line, stand_in), []).append(row)
        return tuple(tuple(sorted(group)) for group in groups.values())

    def group_arithmetic(self, *families: Family) -> Iterator[tuple[list[int], list[ArithmeticSequence]]]:
        """The sequences of one operation on one line, with their rows."""
        groups: dict[object, list[ArithmeticSequence]] = {}
        for one in find_arithmetic_sequences(self.subject.rows).select(*families):
            groups.setdefault((self.find_frame_and_header(one.anchor), one.operation), []).append(one)
        for members in groups.values():
            yield [row for one in members for row in (*one.inlined, *one.call_block)], members

    def report_accesses(
        self, check: str, warps: WarpFacts, told: Iterable[tuple[SymbolicAccess, Sentence, Sentence]]
    ) -> Iterator[StaticFinding]:
        """A finding for each line and message, shown by the machine instructions of that line; what stands in no source at hand is left out."""
        is_assumed = warps.found.looks_beyond_x and warps.found.shape is None
        seen: set[tuple[object, str]] = set()
        for access, message, remedy in told:
            frame = self.find_frame_at_hand(access.instruction.chain)
            if frame is None or (frame.source_line, message) in seen:
                continue
            seen.add((frame.source_line, message))
            rows = self._list_rows(frame, access)
            place = None if rows else frame
            yield self.make_finding(
                check,
                rows,
                message=message,
                remedy=remedy,
                certainty=Certainty.CERTAIN if access.is_certain and not is_assumed else Certainty.LIKELY,
                place=place,
                is_costly=access.cost is not None and access.cost >= _COSTLY_FACTOR * access.ideal,
            )

    def _list_rows(self, frame: Frame, access: SymbolicAccess) -> list[int]:
        """Machine instructions of a line that do what an instruction of PTX does."""
        rows = np.flatnonzero(mark_accesses(self.subject.rows, _SPACES[access.space], _ACCESSES[access.kind])).tolist()
        return [
            row for row in rows if (own := self.find_frame(row)) is not None and own.source_line == frame.source_line
        ]

    def make_finding(
        self,
        check: str,
        rows: Sequence[int],
        *,
        message: Sentence,
        remedy: Sentence,
        certainty: Certainty = Certainty.CERTAIN,
        anchor: int | None = None,
        place: Frame | None = None,
        is_costly: bool = False,
    ) -> StaticFinding:
        """A finding about some rows.

        Args:
            rows: the instructions, at least one unless ``place`` is given.
            anchor: the row whose line it is about; None for the first one.
        """
        ordered = sorted(set(rows))
        anchor = anchor if anchor is not None else next(iter(ordered), None)
        frame = place or (None if anchor is None else self.find_frame(anchor))
        depths = [self.count_loops(row) for row in ordered]
        return StaticFinding(
            check=check,
            kernel=self.subject.kernel.mangled_name,
            file=None if frame is None else frame.file,
            line=None if frame is None else frame.line,
            chain=None if anchor is None or place is not None else self.subject.rows.chain(anchor),
            message=message,
            remedy=remedy,
            certainty=certainty,
            loop_depth=max(depths, default=0),
            weight=sum(LOOP_WEIGHT**depth for depth in depths),
            instructions=tuple(self._show(row) for row in ordered[:MOST_EVIDENCE]),
            is_costly=is_costly,
        )

    def _show(self, row: int) -> Evidence:
        rows = self.subject.rows
        return Evidence(function=rows.function_of(row).name, pc_offset=int(rows.pc_offsets[row]), text=rows.texts[row])
