"""The instructions of a SASS document, one line each, in fixed columns.

    /*0130*/   212   12.3 %  long_scoreboard   │ LDG.E.64.SYS R4, [R2]                  // waits SB0 · sets SB1 · stall 4

address, source line, share of the kernel's samples, the stall reason of most of them, a bar per loop around it, the instruction, and what the
compiler told the scheduler. What is unknown or nothing is left blank.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.basis.numbers import format_percent
from gpa_lsp.basis.visible_text import keep_length
from gpa_lsp.profile.stall_reasons import describe_stall_reason
from gpa_lsp.render.control_words import describe_controls
from gpa_lsp.report.model import InstructionColumns, KernelReport

_LEAST_SHOWN_RATIO = 0.0005
"""Below this share of the kernel's samples a number would only hide those that matter, and a stall reason is chance."""

_FEW = "·"
"""Stands for a share too small to show, so that nothing is taken for code that never ran."""

_MOST_BARS = 6
_LONGEST_REASON = 20
_LONGEST_TEXT = 52
"""Where scheduling words begin; longer instructions push their own to the right."""

_USUAL_TEXT_RATIO = 0.98
_FOREIGN_OFFSET = 1 << 32
_NO_TEXT = "// not disassembled"
_LEAST_STALL_CYCLES = 2
"""One cycle is what every instruction takes."""

_UP, _DOWN = "↑", "↓"


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Characters of each column; 0 for a column the kernel has nothing for.

    Attributes:
        address: hexadecimal digits of an address.
        line: digits of a source line.
        share: of a share.
        reason: of a stall reason.
        bars: loops around an instruction that are shown.
        text: of most instructions.
    """

    address: int
    line: int
    share: int
    reason: int
    bars: int
    text: int

    @property
    def instruction_column(self) -> int:
        """Characters before the instruction."""
        gaps = (
            self.line + 1 if self.line else 0,
            self.share + 2 if self.share else 0,
            self.reason + 1 if self.reason else 0,
        )
        return len(self.show_address(0)) + sum(gaps) + (self.bars + 2 if self.bars else 2)

    def show_address(self, offset: int) -> str:
        """An address as nvdisasm writes it."""
        return f"/*{offset:0{self.address}x}*/"

    def show_label(self, offset: int) -> str:
        """The name of the place at an address: what a branch goes to."""
        return f".L_{offset:0{self.address}x}"

    def name_columns(self) -> str:
        """The columns' titles, as a comment."""
        line = " " + "line".rjust(self.line) if self.line else ""
        share = "  " + "share".rjust(self.share) if self.share else ""
        reason = " " + "stalled by".ljust(self.reason) if self.reason else ""
        head = "// addr".ljust(len(self.show_address(0))) + line + share + reason
        return f"{head.ljust(self.instruction_column)}{'instruction'.ljust(self.text)}  // for the scheduler"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """The instruction lines of a kernel.

    Attributes:
        layout: their columns.
        lines: one per instruction.
    """

    layout: Layout
    lines: list[str]


def build_rows(report: KernelReport) -> Rows:
    """The instruction lines of a kernel."""
    columns = report.instructions
    samples: npt.NDArray[np.int64] = columns.all_samples.sum(axis=1)
    shares = _list_shares(samples, report.total_samples)
    reasons = list_top_reasons(columns, samples, report.total_samples)
    numbers = _list_source_lines(columns)
    layout = _choose_layout(columns, numbers, shares, reasons)
    heads = _join_heads(columns, layout, numbers, shares, reasons)
    tails = _list_tails(report, layout)
    width = layout.text
    lines = [
        f"{head}{text:<{width}}  // {tail}" if tail else f"{head}{text or _NO_TEXT}"
        for head, text, tail in zip(heads, map(keep_length, columns.texts), tails, strict=True)
    ]
    return Rows(layout=layout, lines=lines)


def find_stall_columns(reasons: Sequence[str]) -> npt.NDArray[np.bool_]:
    """bool[k], which reasons are stalls: a warp that issued, or could have, was not."""
    return np.array([describe_stall_reason(reason).is_stall for reason in reasons], dtype=np.bool_)


def list_top_reasons(columns: InstructionColumns, samples: npt.NDArray[np.int64], total: int) -> list[str]:
    """The stall reason of most samples of each instruction; empty where there is none to speak of."""
    if not columns.reasons or not total:
        return [""] * len(columns)
    stalls = columns.all_samples * find_stall_columns(columns.reasons)
    top = stalls.argmax(axis=1)
    is_named = (stalls.max(axis=1) > 0) & (samples >= _LEAST_SHOWN_RATIO * total)
    names = [keep_length(name)[:_LONGEST_REASON] for name in columns.reasons] + [""]
    return [names[number] for number in np.where(is_named, top, -1).tolist()]


def _list_shares(samples: npt.NDArray[np.int64], total: int) -> list[str]:
    if not total:
        return [""] * len(samples)
    distinct, number = np.unique(samples, return_inverse=True)
    shown = [
        format_percent(count / total) if count >= _LEAST_SHOWN_RATIO * total else _FEW if count > 0 else ""
        for count in distinct.tolist()
    ]
    return [shown[index] for index in number.reshape(-1).tolist()]


def _list_source_lines(columns: InstructionColumns) -> list[str]:
    """The line of each instruction's innermost frame."""
    shown = [str(chain[0].line) if chain[0].line > 0 else "" for chain in columns.chains] + [""]
    return [shown[number] for number in columns.chain_index.tolist()]


def _choose_layout(
    columns: InstructionColumns, numbers: Sequence[str], shares: Sequence[str], reasons: Sequence[str]
) -> Layout:
    own = columns.pc_offsets[columns.pc_offsets < _FOREIGN_OFFSET]
    lengths = sorted(len(text) for text in columns.texts)
    usual = lengths[int(_USUAL_TEXT_RATIO * len(lengths))] if lengths else 0
    return Layout(
        address=max(4, len(f"{int(own.max()):x}") if len(own) else 0),
        line=max([len(number) for number in set(numbers)], default=0),
        share=max([len(share) for share in set(shares)], default=0),
        reason=max([len(reason) for reason in set(reasons)], default=0),
        bars=min(_MOST_BARS, int(columns.loop_depths.max())) if len(columns) else 0,
        text=min(_LONGEST_TEXT, max(usual, len("instruction"))),
    )


def _join_heads(
    columns: InstructionColumns,
    layout: Layout,
    numbers: Sequence[str],
    shares: Sequence[str],
    reasons: Sequence[str],
) -> list[str]:
    """What stands before the instructions; most of it is the same on many lines."""
    depths = np.minimum(columns.loop_depths, layout.bars).tolist()
    known: dict[tuple[str, str, str, int], str] = {}
    heads: list[str] = []
    blank = " " * len(layout.show_address(0))
    digits = layout.address
    for offset, *cells in zip(columns.pc_offsets.tolist(), numbers, shares, reasons, depths, strict=True):
        key: Any = tuple(cells)
        middle = known.get(key)
        if middle is None:
            middle = known[key] = _join_middle(layout, *key)
        heads.append((f"/*{offset:0{digits}x}*/" if offset < _FOREIGN_OFFSET else blank) + middle)
    return heads


def _join_middle(layout: Layout, number: str, share: str, reason: str, depth: int) -> str:
    parts: list[str] = []
    if layout.line:
        parts.append(f" {number:>{layout.line}}")
    if layout.share:
        parts.append(f"  {share:>{layout.share}}")
    if layout.reason:
        parts.append(f" {reason:<{layout.reason}}")
    parts.append(f" {'│' * depth:<{layout.bars}} " if layout.bars else "  ")
    return "".join(parts)


def _list_tails(report: KernelReport, layout: Layout) -> list[str]:
    """What is said behind the instructions: where a branch goes, scheduling, where foreign code is."""
    columns = report.instructions
    tails = describe_controls(columns, least_stall_cycles=_LEAST_STALL_CYCLES)
    offsets = columns.pc_offsets
    for row in np.flatnonzero(offsets >= _FOREIGN_OFFSET).tolist():
        tails[row] = f"code outside this module, at 0x{int(offsets[row]):x}"
    if report.code is None:
        return tails
    targets = report.code.target_row
    for row in np.flatnonzero(targets >= 0).tolist():
        target = int(targets[row])
        where = f"{_UP if target <= row else _DOWN} {layout.show_label(int(offsets[target]))}"
        tails[row] = f"{where} · {tails[row]}" if tails[row] else where
    return tails
