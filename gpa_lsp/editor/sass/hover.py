"""The hover of an instruction: the operand under the cursor, the instruction itself, its stalls, its source."""

from gpa_lsp.editor.model import Hover, Position
from gpa_lsp.editor.sass.library import SassView


def describe_hover(view: SassView, position: Position) -> Hover | None:
    """What is to be said about the instruction under the cursor; None on lines without one."""
    # these need numpy, which the answer to initialize must not wait for
    from gpa_lsp.editor.sass.instruction_hover import describe_details, describe_opcode
    from gpa_lsp.editor.sass.jumps import point_at, span_instruction
    from gpa_lsp.editor.sass.operand_hover import describe_operand
    from gpa_lsp.editor.sass.stall_hover import describe_share, describe_source, describe_stalls

    pointed = point_at(view, position)
    if pointed is None:
        return None
    document, row, value = view.document, pointed.row, pointed.value
    operand = "" if value is None else describe_operand(document, row, value)
    parts = [
        operand,
        describe_opcode(document, row),
        describe_share(document, row),
        describe_details(document, row),
        describe_stalls(document, row),
        describe_source(view, row),
    ]
    text = "\n\n".join(part for part in parts if part)
    span = span_instruction(view, row, value.start, value.end) if value is not None and operand else None
    return Hover(text=text, range=span or span_instruction(view, row))
