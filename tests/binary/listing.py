"""A notation for SASS that people can write, in place of binaries.

One instruction per line, with three optional parts in front: a control code, the offset, a guard::

    B01:R-:W2:Y:S04  /*0010*/  @!P0 LDG.E R2, [R4.64]   # waits for 0 and 1, sets 2 when written, may yield, stalls 4 cycles
    loop:
    B2:R-:W-:-:S01             IADD3 R6, R2, 0x1, RZ
                               @P1 BRA loop

* **Control code**: ``B`` and the scoreboards waited for (digits, dashes ignored), ``R`` and ``W`` and the scoreboard released when the
  operands are read and when the result is written (or ``-``), ``Y`` when the warp may yield (or ``-``), ``S`` and the stall cycles. A line
  without one stalls for one cycle and does nothing else.
* **Offset**: as nvdisasm prints it; it must be the right one, 16 bytes per instruction from 0.
* **Label**: a name and a colon on a line of its own; it can stand for its offset as the target of a branch. nvdisasm's own labels
  (```(.L_x_1)``) will do.
* ``#`` or ``//`` starts a comment; a final semicolon is ignored.

Registers are found as in nvdisasm's text; memory descriptors that only encodings name are of course not.

>>> listing = parse_listing('''
...     B-:R-:W2:-:S02   LDG.E R2, [R4.64]
... loop:
...     B2:R-:W-:-:S04   IADD3 R2, R2, 0x1, RZ
...     B-:R-:W-:-:S13   ISETP.LT.AND P0, PT, R2, R6, PT
...     B-:R-:W-:Y:S05   @P0 BRA loop
... ''')
>>> listing.target.tolist(), listing.reads.of(0), listing.control.wait_mask.tolist()
([-1, -1, -1, 16], (4, 5), [0, 4, 0, 0])
"""

import re
from collections.abc import Sequence

import numpy as np

from gpa_lsp.code.binary.model import INSTRUCTION_BYTES, NO_BARRIER, ControlCodes, Instructions
from gpa_lsp.code.binary.opcodes import describe_mnemonic
from gpa_lsp.code.binary.sass import decode_instructions, split_operands
from gpa_lsp.code.binary.uses import OperandKind, parse_operand
from gpa_lsp.foundation.errors import InputError

_COMMENT = re.compile(r"\s*(?:#|//).*")
_LABEL = re.compile(r"[A-Za-z_.$][\w.$]*:")
_CONTROL = re.compile(r"B([-0-5]*):R([-0-5]):W([-0-5]):([-Y]):S(\d{1,2})(?:\s+|\Z)")
_LOOKS_LIKE_CONTROL = re.compile(r"B[-\d]*:")
_OFFSET = re.compile(r"/\*([0-9a-fA-F]+)\*/\s*")
_TARGET = re.compile(r"(?:`\((?P<quoted>[\w.$]+)\)|(?P<bare>(?<![\w.$])[A-Za-z_.$][\w.$]*))\Z")
_REUSE = ".reuse"
_LONGEST_STALL = 15
_REUSE_SLOTS = 4
_ControlRow = tuple[int, int, int, int, int, int]
# Fields of :class:`ControlCodes`, in their order, of a line without control code
_PLAIN: _ControlRow = (1, 0, NO_BARRIER, NO_BARRIER, 0, 0)


def parse_listing(text: str) -> Instructions:
    """Read a listing.

    Returns:
        Its instructions, from offset 0. Reuse flags are set for the sources with ``.reuse``, counted from the first.

    Raises:
        InputError: a line that is no instruction, a wrong offset, an unknown label; the place is the line's number.
    """
    lines: list[tuple[int, str]] = []
    labels: dict[str, int] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        stripped = _COMMENT.sub("", line).strip()
        if _LABEL.fullmatch(stripped):
            labels[stripped[:-1]] = len(lines) * INSTRUCTION_BYTES
        elif stripped:
            lines.append((number, stripped))
    controls: list[_ControlRow] = []
    texts: list[str] = []
    for index, (number, line) in enumerate(lines):
        control, rest = _parse_control(line, number)
        body = _check_offset(rest, index, number)
        if not body:
            raise _refuse("there is no instruction on this line", number)
        texts.append(_replace_label(body, labels, number))
        controls.append((*control[:5], control[5] | _find_reuse(body)))
    return decode_instructions(texts, b"", control=_make_columns(controls))


def _parse_control(line: str, number: int) -> tuple[_ControlRow, str]:
    match = _CONTROL.match(line)
    if match is None:
        if _LOOKS_LIKE_CONTROL.match(line):
            raise _refuse("the control code is not of the form B01:R-:W2:Y:S04", number)
        return _PLAIN, line
    waits, read, write, may_yield, stall = match.groups()
    if int(stall) > _LONGEST_STALL:
        raise _refuse(f"{int(stall)} stall cycles; an instruction can encode {_LONGEST_STALL}", number)
    wait_mask = sum(1 << int(digit) for digit in set(waits) - {"-"})
    barriers = [NO_BARRIER if digit == "-" else int(digit) for digit in (write, read)]
    return (int(stall), int(may_yield == "Y"), barriers[0], barriers[1], wait_mask, 0), line[match.end() :]


def _check_offset(line: str, index: int, number: int) -> str:
    """The line without its offset and semicolon."""
    match = _OFFSET.match(line)
    if match is not None:
        if int(match[1], 16) != index * INSTRUCTION_BYTES:
            raise _refuse(
                f"the offset is 0x{match[1]}; the instruction stands at {index * INSTRUCTION_BYTES:#x}", number
            )
        line = line[match.end() :]
    return " ".join(line.rstrip("; ").split())


def _replace_label(body: str, labels: dict[str, int], number: int) -> str:
    """The instruction with the offset of the label it jumps to.

    A quoted name that is no label here (a call of another function) stays; a bare one is a slip of the pen.
    """
    match = _TARGET.search(body)
    mnemonic = re.sub(r"^@\S+ ", "", body).partition(" ")[0]
    if match is None or not describe_mnemonic(mnemonic).has_pc_target or match.start() < len(mnemonic):
        return body
    offset = labels.get(match["quoted"] or match["bare"])
    if offset is not None:
        return f"{body[: match.start()]}{offset:#x}"
    if match["bare"] and not parse_operand(match["bare"]).groups:
        raise _refuse(f"there is no label {match['bare']}", number)
    return body


def _find_reuse(body: str) -> int:
    """Reuse flags: a bit per source that is no predicate, from the first."""
    mnemonic, _, operands = re.sub(r"^@\S+ ", "", body).partition(" ")
    values = [token for token in split_operands(operands) if parse_operand(token).kind != OperandKind.PREDICATE]
    sources = values[describe_mnemonic(mnemonic).results :]
    return sum(1 << slot for slot, source in enumerate(sources[:_REUSE_SLOTS]) if _REUSE in source)


def _make_columns(rows: Sequence[_ControlRow]) -> ControlCodes:
    table = np.array(rows, dtype=np.uint8).reshape(-1, len(_PLAIN))
    columns = map(np.ascontiguousarray, table.T)
    return ControlCodes(**dict(zip(ControlCodes.__struct_fields__, columns, strict=True)))


def _refuse(message: str, number: int) -> InputError:
    return InputError(message, place=f"line {number}", remedy="see tests/binary/listing.py for the notation")
