"""Names of code in sentences: an instruction as the author of its source would call it, its line, a loop or function.

Where the text of the source is at hand, its grammar says which expression of the line is meant (:mod:`gpa_lsp.code.sources`); where it is not, or
the line does several such things, the name stays as general as the knowledge is.
"""

from collections.abc import Sequence
from functools import lru_cache
from pathlib import PurePosixPath

from gpa_lsp.code.binary.linkage_names import demangle
from gpa_lsp.code.binary.opcodes import Access
from gpa_lsp.code.sources.line_parts import LineParts, read_line_parts
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.foundation.locations import Frame, InlineChain, write_place
from gpa_lsp.foundation.ownership import choose_frame, describe_stand_in, find_library_frame
from gpa_lsp.foundation.prose import NOTHING, Code, Place, Sentence, join, say
from gpa_lsp.kernel.scopes import Scope, ScopeKind

_MOST_NAMED = 3  # Expressions named where a line has several candidates


@lru_cache(maxsize=1024)
def shorten_file(file: str) -> str:
    """The bare name of a file, from a path of any system.

    >>> shorten_file("/a/b/k.cu"), shorten_file("C:\\\\src\\\\k.cu")
    ('k.cu', 'k.cu')
    """
    return PurePosixPath(file.replace("\\", "/")).name or file


def find_own_frame(subject: Subject, row: int) -> Frame | None:
    """The frame with a line by which a row is named; None without one."""
    chain = subject.rows.chain(row)
    frame = None if chain is None else choose_frame(chain)
    return frame if frame is not None and frame.line else None


def read_parts(subject: Subject, row: int) -> LineParts | None:
    """Parts of the source line of a row; None where the source is not at hand."""
    frame = find_own_frame(subject, row)
    text = None if frame is None else subject.read_text(frame.file)
    return None if frame is None or text is None else read_line_parts(frame.file, text, frame.line)


def name_code(text: str) -> Sentence:
    """A piece of code as a clause of its own.

    >>> name_code("x[i]")
    '`x[i]`'
    """
    return Sentence((Code(text=text),))


def name_line(file: str, line: int) -> Sentence:
    """A line, with the bare name of its file.

    >>> name_line("/src/k.cu", 12)
    'line 12 of k.cu'
    """
    return Sentence((Place(file=file, line=line, shown_file=shorten_file(file)),))


def describe_line(subject: Subject, row: int) -> Sentence:
    """``line 12 of k.cu``; the instruction's offset where there is no line."""
    frame = find_own_frame(subject, row)
    if frame is not None:
        return name_line(frame.file, frame.line)
    return say("the instruction at {offset}", offset=_write_offset(subject, row))


def locate(subject: Subject, row: int) -> Sentence:
    """Place of an instruction, as the end of a phrase: ``at line 12 of k.cu``, or ``at 0x1e0`` without a line."""
    frame = find_own_frame(subject, row)
    place = _write_offset(subject, row) if frame is None else name_line(frame.file, frame.line)
    inside = name_inside(subject.rows.chain(row))
    return say("at {place} {inside}", place=place, inside=inside) if inside else say("at {place}", place=place)


def name_inside(chain: InlineChain | None) -> Sentence:
    """``(in __ldg, sm_32_intrinsics.hpp:134)`` where a library's code was inlined into the user's line; else nothing."""
    inner = None if chain is None else find_library_frame(chain)
    if inner is None:
        return NOTHING
    stand_in = describe_stand_in(chain)
    if stand_in:
        return say("({where})", where=stand_in)
    head = demangle(inner.function).partition("(")[0].partition("<")[0] if inner.function else ""
    where = write_place(shorten_file(inner.file), inner.line)
    name = head.rpartition("::")[2].rpartition(" ")[2]
    return say("(in {what})", what=f"{name}, {where}" if name else where)


def describe_place(subject: Subject, row: int) -> Sentence:
    """Describe an instruction and its place: ``the load of `x[i]` at line 12 of k.cu``.

    A load or store is named by the expression when its line has one or a few of them; anything else by its opcode.
    """
    return say("{deed} {where}", deed=_name_deed(subject, row), where=locate(subject, row))


def describe_scope(subject: Subject, scope: Scope) -> Sentence:
    """``the loop at line 30 of k.cu``, ``the kernel``, ``the function at line 5 of k.cu``."""
    name = _SCOPE_NAMES[scope.kind]
    if scope.kind is ScopeKind.KERNEL:
        return say(name)
    if scope.file and scope.line:
        return say("{scope} at {line}", scope=name, line=name_line(scope.file, scope.line))
    if scope.kind in (ScopeKind.LOOP, ScopeKind.CALL):
        return say("{scope} at {offset}", scope=name, offset=_write_offset(subject, scope.row))
    return say(name)


_SCOPE_NAMES = {
    ScopeKind.KERNEL: "the kernel",
    ScopeKind.FUNCTION: "the function",
    ScopeKind.LOOP: "the loop",
    ScopeKind.CALL: "the call",
    ScopeKind.INLINED: "the inlined function",
    ScopeKind.LINE: "the code",
}


def quote(expressions: Sequence[str]) -> Sentence:
    """A few expressions.

    >>> quote(["x[i]"]), quote(["a", "b", "c", "d"])
    ('`x[i]`', '`a`, `b`, `c` or another')
    """
    named = join(map(name_code, expressions[:_MOST_NAMED]), ", ")
    return say("{named} or another", named=named) if len(expressions) > _MOST_NAMED else named


# What to write for an access of so many bytes
WIDE_TYPES = {
    2: say("a 16-bit type"),
    4: say("a 32-bit type"),
    8: say("{float2} or {uint2}", float2=Code(text="float2"), uint2=Code(text="uint2")),
    16: say("{float4} or {uint4}", float4=Code(text="float4"), uint4=Code(text="uint4")),
}


# Why something is in local memory, and what to do, by whether it is indexed
LOCAL_CAUSES = {True: "its index is unknown at compile time", False: "its address is taken"}
LOCAL_REMEDIES = {
    True: say(
        "Fully unroll the loops that index it to keep it in registers, or give each thread a column of shared memory."
    ),
    False: say("Pass it by value, or inline the function that takes its address."),
}


def _write_offset(subject: Subject, row: int) -> str:
    return f"{int(subject.rows.function_of(row).pc_offsets[subject.rows.index_of(row)]):#x}"


def _name_deed(subject: Subject, row: int) -> Sentence:
    opcode = subject.rows.opcode(row)
    parts = read_parts(subject, row)
    loads, stores = (parts.loads, parts.stores) if parts else ((), ())
    if opcode.access in (Access.ATOMIC, Access.REDUCTION):
        return _name_expression("atomic", "on", loads)
    if opcode.access in (Access.LOAD, Access.COPY):
        return _name_expression("load", "of", loads)
    if opcode.access is Access.STORE:
        return _name_expression("store", "to", stores)
    return say("the {opcode}", opcode=opcode.name or "instruction")


def _name_expression(deed: str, preposition: str, expressions: Sequence[str]) -> Sentence:
    if not expressions:
        return say("the {deed}", deed=deed)
    if len(expressions) == 1:
        return say("the {deed} {of} {what}", deed=deed, of=preposition, what=quote(expressions))
    return say(
        "{article} {deed} ({what})", article="an" if deed == "atomic" else "a", deed=deed, what=quote(expressions)
    )
