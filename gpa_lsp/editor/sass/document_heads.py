"""The headings of a SASS document: functions as labels, loops as remarks, blocks as labels."""

from collections.abc import Sequence

import numpy as np

from gpa_lsp.basis.numbers import format_count_of, format_percent
from gpa_lsp.basis.visible_text import make_one_line
from gpa_lsp.editor.sass.columns import find_stall_columns
from gpa_lsp.editor.sass.document_parts import Part
from gpa_lsp.editor.sass.document_quotes import QuoteWriter
from gpa_lsp.editor.sass.document_rows import Layout
from gpa_lsp.editor.sass.model import SectionKind
from gpa_lsp.report.code import KernelCode
from gpa_lsp.report.model import FunctionRole, KernelReport
from gpa_lsp.report.names import demangle, shorten_name

_LONGEST_FUNCTION = 80
_MOST_NAMED = 4
_HARDLY_ANY = "<"
"""How a share that rounds to nothing begins."""

_ROLE_WORDS = {
    FunctionRole.KERNEL: "kernel",
    FunctionRole.DEVICE_FUNCTION: "device function",
    FunctionRole.SUB_FUNCTION: "local function",
    FunctionRole.OUTSIDE_MODULE: "outside this module",
}


class HeadWriter:
    """Writes headings.

    Args:
        report: the kernel.
        layout: the columns of its instructions.
        quotes: names source lines.
    """

    def __init__(self, report: KernelReport, layout: Layout, quotes: QuoteWriter) -> None:
        self._report = report
        self._layout = layout
        self._quotes = quotes
        self._offsets = report.instructions.pc_offsets

    def name(self, part: Part) -> str:
        """What a part is called."""
        if part.kind is SectionKind.FUNCTION:
            return self._name_function(part)
        if part.kind is SectionKind.LOOP:
            loop = self._report.loops[part.number]
            if loop.file is not None and loop.first_line:
                lines = self._quotes.name_lines(loop.file, loop.first_line, loop.last_line or loop.first_line)
                return f"loop {lines}"
            return f"loop {self._layout.show_label(loop.header_pc_offset)}"
        return self._layout.show_label(int(self._offsets[part.first_row]))

    def write(self, part: Part, name: str, detail: str) -> str:
        """The heading.

        Args:
            part: what it stands above.
            name: as :meth:`name` has it.
            detail: its samples.
        """
        facts = [detail] if detail and not detail.startswith(_HARDLY_ANY) else []
        if part.kind is SectionKind.LOOP:
            return "// " + " · ".join([name, *self._describe_loop(part), *facts])
        if part.kind is SectionKind.FUNCTION:
            facts = [*self._describe_function(part), *facts]
        else:
            facts = [*facts, *self._describe_block(part)]
        label = f"{name}:"
        if not facts:
            return label
        return f"{label:<{self._layout.instruction_column - 1}} // {' · '.join(facts)}"

    def _name_function(self, part: Part) -> str:
        if part.function is not None:
            name = part.function.name
        else:
            columns = self._report.instructions
            name = columns.functions[int(columns.function_index[part.first_row])]
        return make_one_line(shorten_name(demangle(name), _LONGEST_FUNCTION)) or "function"

    def _describe_function(self, part: Part) -> list[str]:
        row = part.function
        facts = [] if row is None else [_ROLE_WORDS[row.role]]
        if row is not None and row.instruction_count:
            facts.append(format_count_of(row.instruction_count, "instruction"))
        if row is not None and row.registers is not None:
            facts.append(f"{row.registers} registers")
        return facts

    def _describe_loop(self, part: Part) -> list[str]:
        loop = self._report.loops[part.number]
        first = int(self._offsets[part.first_row])
        is_elsewhere = first != loop.header_pc_offset
        entry = [f"entered at {self._layout.show_label(loop.header_pc_offset)}"] if is_elsewhere else []
        return [f"depth {loop.depth}", *entry]

    def _describe_block(self, part: Part) -> list[str]:
        """Where control comes from, except from above."""
        code = self._report.code
        if code is None:
            return []
        block = part.number
        if not code.is_reachable[block]:
            return ["nothing leads here"]
        sources = code.predecessors[code.predecessor_starts[block] : code.predecessor_starts[block + 1]].tolist()
        above = [source for source in sources if source < block - 1]
        below = [source for source in sources if source >= block]
        return [
            f"{word} {self._name_blocks(code, blocks)}"
            for word, blocks in (("from", above), ("back from", below))
            if blocks
        ]

    def _name_blocks(self, code: KernelCode, blocks: Sequence[int]) -> str:
        named = [self._layout.show_label(int(self._offsets[code.first_row[block]])) for block in blocks[:_MOST_NAMED]]
        more = [f"{len(blocks) - _MOST_NAMED} more"] if len(blocks) > _MOST_NAMED else []
        return ", ".join([*named, *more])


def describe_samples(report: KernelReport, parts: Sequence[Part]) -> list[str]:
    """The samples of each part as a share of the kernel's, and their top stall reason; empty without samples."""
    columns = report.instructions
    if not report.total_samples or not parts or not columns.reasons:
        return [""] * len(parts)
    sums = np.zeros((len(columns) + 1, len(columns.reasons)), dtype=np.int64)
    np.cumsum(columns.all_samples, axis=0, out=sums[1:])
    ends = sums[[part.last_row + 1 for part in parts]] - sums[[part.first_row for part in parts]]
    stalls = ends * find_stall_columns(columns.reasons)
    totals, tops, most = ends.sum(axis=1).tolist(), stalls.argmax(axis=1).tolist(), stalls.max(axis=1).tolist()
    details: list[str] = []
    for part, own, top, stalled in zip(parts, totals, tops, most, strict=True):
        samples = _count_samples(report, part, own)
        reason = [make_one_line(columns.reasons[top])] if stalled else []
        share = format_percent(samples / report.total_samples)
        details.append(" · ".join([share, *reason]) if samples else "")
    return details


def _count_samples(report: KernelReport, part: Part, own_samples: int) -> int:
    """A loop has samples also where its section does not show them."""
    return report.loops[part.number].samples if part.kind is SectionKind.LOOP else own_samples
