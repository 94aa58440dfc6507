"""What a hover says about the operand under the cursor."""

import struct
from collections.abc import Sequence

from gpa_lsp.code.binary.opcodes import describe_special_register
from gpa_lsp.document.markdown_text import mark_code
from gpa_lsp.editor.sass.hints import name_instruction
from gpa_lsp.editor.sass.instruction_hover import name_resources
from gpa_lsp.editor.sass.library import SassDocument
from gpa_lsp.editor.sass.operand_spans import OperandValue, SpanKind, find_target
from gpa_lsp.foundation.visible_text import make_one_line
from gpa_lsp.report.code_queries import FoundRows, find_defs, find_uses
from gpa_lsp.report.model import KernelCode

_MOST_NAMED = 4
_LARGEST_WORD = 0xFFFFFFFF
_LAUNCH_BANK = "c[0x0]"
_ZEROS = ("RZ", "URZ")
_SMALLEST_FLOAT, _LARGEST_FLOAT = 1e-9, 1e12  # Numbers beyond are hardly ever meant as floats


def describe_operand(document: SassDocument, row: int, value: OperandValue) -> str:
    """Where the value of an operand comes from and goes to, or what a constant is; empty where there is nothing to say."""
    name = document.shown.kernel.report.instructions.texts[row][value.start : value.end]
    if value.kind is SpanKind.TARGET:
        target = find_target(document, row, value)
        return "" if target is None else f"goes to {mark_code(name_instruction(document, target))}"
    if value.resources:
        return _describe_value(document, row, value)
    if value.kind is SpanKind.SPECIAL_REGISTER:
        words = describe_special_register(name)
        return f"**{make_one_line(name)}**: {words}" if words else ""
    if value.kind is SpanKind.CONSTANT and name.startswith(_LAUNCH_BANK):
        return f"**{name}**: constant bank 0 holds what the launch passed: sizes of grid and block, and the kernel's parameters"
    if value.kind is SpanKind.IMMEDIATE:
        return describe_number(name)
    return f"**{name}** is always zero" if name in _ZEROS else ""


def describe_number(text: str) -> str:
    """A hexadecimal number in decimal, and as a 32-bit float where it may be meant as one; empty for what is plain already.

    >>> describe_number("0x3f800000"), describe_number("-0x10"), describe_number("0x8"), describe_number("1.5")
    ('0x3f800000 = 1065353216, or 1.0 as a 32-bit float', '-0x10 = -16', '', '')
    """
    digits = text.removeprefix("-")
    if not digits.startswith("0x"):
        return ""
    number = int(digits, 16)
    if number < 10:
        return ""
    words = f"{text} = {-number if text.startswith('-') else number}"
    if number <= _LARGEST_WORD and not text.startswith("-"):
        (meant,) = struct.unpack("<f", struct.pack("<I", number))
        if _SMALLEST_FLOAT < abs(meant) < _LARGEST_FLOAT:
            words += f", or {_shorten_float(meant)} as a 32-bit float"
    return words


def _shorten_float(number: float) -> str:
    """With as many digits as a 32-bit float has."""
    return repr(float(f"{number:.7g}"))


def _describe_value(document: SassDocument, row: int, value: OperandValue) -> str:
    code = document.shown.kernel.report.code
    if code is None:
        return ""
    sentences = []
    for is_written, lists in ((False, code.reads), (True, code.writes)):
        if not (value.is_written if is_written else value.is_read):
            continue
        resources = [resource for resource in value.resources if resource in lists.of(row)]
        if resources:
            describe = _describe_uses if is_written else _describe_defs
            sentences.append(f"**{name_resources(resources)}** {describe(document, code, row, resources)}")
    return "; ".join(sentences)


def _describe_defs(document: SassDocument, code: KernelCode, row: int, resources: Sequence[int]) -> str:
    answers = [find_defs(code, row, resource) for resource in resources]
    names = _list_names(document, answers)
    words = f"was written by {names}" if names else ""
    if any(answer.is_from_outside for answer in answers):
        words += " or holds" if words else "holds"
        words += " what it held before the function, or nothing"
    calls = _name_calls(document, answers)
    return (words or "was not written before") + (
        f" (unless the function called at {calls} changes it)" if calls else ""
    )


def _describe_uses(document: SassDocument, code: KernelCode, row: int, resources: Sequence[int]) -> str:
    answers = [find_uses(code, row, resource) for resource in resources]
    names = _list_names(document, answers)
    calls = _name_calls(document, answers)
    perhaps = [f"by the function called at {calls}"] if calls else []
    if any(answer.is_from_outside for answer in answers):
        perhaps.append("where the function returns to")
    words = f"is read by {names}" if names else ""
    if perhaps:
        words += f"{', and perhaps' if words else 'may be read'} {' or '.join(perhaps)}"
    return words or "is not read any more"


def _list_names(document: SassDocument, answers: Sequence[FoundRows]) -> str:
    rows = sorted({row for answer in answers for row in answer.rows})
    named = ", ".join(mark_code(name_instruction(document, row)) for row in rows[:_MOST_NAMED])
    more = len(rows) - _MOST_NAMED
    is_complete = all(answer.is_complete for answer in answers)
    if more > 0:
        return f"{named} and {more} more" if is_complete else f"{named} and at least {more} more"
    return named if is_complete else f"{named} and others"


def _name_calls(document: SassDocument, answers: Sequence[FoundRows]) -> str:
    """The calls on the way whose code is not followed; empty without any."""
    calls = sorted({call for answer in answers for call in answer.past_calls})
    if not calls:
        return ""
    more = f" and {len(calls) - 1} more" if len(calls) > 1 else ""
    return f"{mark_code(name_instruction(document, calls[0]))}{more}"
