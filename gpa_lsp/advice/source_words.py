"""Words for places: what an instruction stands for in the source, as its author would call it.

Where the text of the source is at hand, its grammar says which expression of the line is meant (:mod:`gpa_lsp.sources`); where it is not, or
the line does several such things, the words stay as general as the knowledge is.
"""

from collections.abc import Sequence
from functools import lru_cache
from pathlib import PurePosixPath

from gpa_lsp.advice.subject import Subject
from gpa_lsp.basis.locations import Frame
from gpa_lsp.binary.opcodes import Access
from gpa_lsp.rows.scopes import Scope, ScopeKind
from gpa_lsp.sources.line_parts import LineParts, read_line_parts

_MOST_NAMED = 3
"""Expressions named where a line has several candidates."""


@lru_cache(maxsize=1024)
def shorten_file(file: str) -> str:
    """The bare name of a file, whichever system wrote its path.

    >>> shorten_file("/a/b/k.cu"), shorten_file("C:\\\\src\\\\k.cu")
    ('k.cu', 'k.cu')
    """
    return PurePosixPath(file.replace("\\", "/")).name or file


def find_own_frame(subject: Subject, row: int) -> Frame | None:
    """The innermost frame of a row with a line; None without one."""
    return subject.once(_list_own_frames)[row]


def _list_own_frames(subject: Subject) -> list[Frame | None]:
    """Of each row."""
    found: list[Frame | None] = []
    for function in subject.rows.functions:
        chains = () if function.lines is None else function.lines.chains
        # The last one is that of -1: no line.
        frames = [*(next((frame for frame in chain if frame.line), None) for chain in chains), None]
        found.extend(frames[index] for index in function.chain_index.tolist())
    return found


def read_parts(subject: Subject, row: int) -> LineParts | None:
    """What the source line of a row does; None where the source is not at hand."""
    frame = find_own_frame(subject, row)
    text = None if frame is None else subject.read_source(frame.file)
    return None if frame is None or text is None else read_line_parts(frame.file, text, frame.line)


def describe_line(subject: Subject, row: int) -> str:
    """``line 12 of k.cu``; the instruction's offset where there is no line."""
    frame = find_own_frame(subject, row)
    if frame is not None:
        return f"line {frame.line} of {shorten_file(frame.file)}"
    offset = int(subject.rows.function_of(row).pc_offsets[subject.rows.index_of(row)])
    return f"the instruction at {offset:#x}"


def describe_place(subject: Subject, row: int) -> str:
    """What an instruction does and where: ``the load of `x[i]` in line 12 of k.cu``.

    A load or store is named by the expression when its line has one or a few of them; anything else by its opcode.
    """
    deed = _name_deed(subject, row)
    if find_own_frame(subject, row) is not None:
        return f"{deed} in {describe_line(subject, row)}"
    return f"{deed} {describe_line(subject, row).removeprefix('the instruction ')}"


def describe_scope(subject: Subject, scope: Scope) -> str:
    """``the loop in line 30 of k.cu``, ``the kernel``, ``the function f``."""
    where = f" in line {scope.line} of {shorten_file(scope.file)}" if scope.file and scope.line else ""
    words = {
        ScopeKind.KERNEL: "the kernel",
        ScopeKind.FUNCTION: "the function",
        ScopeKind.LOOP: "the loop",
        ScopeKind.CALL: "the call",
        ScopeKind.INLINED: "the inlined function",
        ScopeKind.LINE: "the code",
    }[scope.kind]
    if scope.kind in (ScopeKind.LOOP, ScopeKind.CALL) and not where:
        offset = int(subject.rows.function_of(scope.row).pc_offsets[subject.rows.index_of(scope.row)])
        where = f" at {offset:#x}"
    return "the kernel" if scope.kind is ScopeKind.KERNEL else f"{words}{where}"


def quote(expressions: Sequence[str]) -> str:
    """A few expressions in code quotes.

    >>> quote(["x[i]"]), quote(["a", "b", "c", "d"])
    ('`x[i]`', '`a`, `b`, `c` or another')
    """
    named = ", ".join(f"`{expression}`" for expression in expressions[:_MOST_NAMED])
    return f"{named} or another" if len(expressions) > _MOST_NAMED else named


def _name_deed(subject: Subject, row: int) -> str:
    opcode = subject.rows.opcode(row)
    parts = read_parts(subject, row)
    loads, stores = (parts.loads, parts.stores) if parts else ((), ())
    if opcode.access in (Access.ATOMIC, Access.REDUCTION):
        return _name_expression("atomic", "on", loads)
    if opcode.access in (Access.LOAD, Access.COPY):
        return _name_expression("load", "of", loads)
    if opcode.access is Access.STORE:
        return _name_expression("store", "to", stores)
    return f"the {opcode.name}" if opcode.name else "the instruction"


def _name_expression(deed: str, preposition: str, expressions: Sequence[str]) -> str:
    if not expressions:
        return f"the {deed}"
    if len(expressions) == 1:
        return f"the {deed} {preposition} {quote(expressions)}"
    article = "an" if deed.startswith("a") else "a"
    return f"{article} {deed} ({quote(expressions)})"
