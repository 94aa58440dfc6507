"""Compiler output → :class:`~gpa_lsp.execution.compiler.model.CompilerMessage`: NVRTC, nvcc, its front end, g++, cl, ptxas, nvlink.

Everything is read from text in one pass, line by line; what no pattern knows belongs to the message before it (a line of source, a mark under it,
the rest of a long sentence) or is left out.

Source: the output of NVRTC 13.5, nvcc 13.0 and 13.5, g++ 12 and ptxas for sources with faults of each kind.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from msgspec.structs import replace

from gpa_lsp.execution.compiler.model import CompiledUnit, CompilerMessage
from gpa_lsp.foundation.errors import ProblemSeverity

MOST_MESSAGES = 200
LONGEST_TEXT = 2000
_LONGEST_LINE = 4000
_MOST_LINES = 100_000

FindLine = Callable[[Path, int], str | None]  # The text of a line (1-based) of a file; None when it is not known

# all other kinds are errors
_SEVERITIES = {"warning": ProblemSeverity.WARNING, "remark": ProblemSeverity.NOTE, "note": ProblemSeverity.NOTE}
_KINDS = r"(?P<kind>(?:catastrophic |fatal |internal )?error|warning|remark|note)"
# EDG's, which NVRTC and nvcc share, and cl's
_FRONT_END = re.compile(
    rf"(?P<path>\S.*?)\((?P<line>\d+)(?:,(?P<column>\d+))?\)\s?: {_KINDS}(?: #?(?P<number>[A-Z]*\d+)(?:-[A-Z])?)?: (?P<text>.*)"
)
# g++'s and clang's
_HOST = re.compile(rf"(?P<path>(?:[A-Za-z]:)?[^:\s][^:]*):(?P<line>\d+)(?::(?P<column>\d+))?: {_KINDS}: (?P<text>.*)")
_ASSEMBLER_PLACE = re.compile(r"ptxas \S.*, line (?P<line>\d+); (?P<kind>error|fatal|warning)\s*: (?P<text>.*)")
_TOOL = re.compile(
    r"(?:(?P<tool>nvcc|ptxas|nvlink|cicc|fatbinary|cudafe\+\+|nvrtc|At end of source|gcc|g\+\+|cc1plus|clang|sh)(?:: \d+)?\s*:?\s*)"
    r"(?P<kind>(?:catastrophic |fatal |internal )?error|fatal|warning|remark)\s*(?: #(?P<number>\d+)(?:-D)?)?\s*: ?(?P<text>.*)"
)
_COMMAND_LINE = re.compile(r"Command-line (?P<kind>error|warning)(?: #(?P<number>\d+)(?:-D)?)?: (?P<text>.*)")
_NOT_FOUND = re.compile(r"sh: (?:\d+: )?(?P<text>.+: not found)")
_NOISE = re.compile(
    r"Remark: The warnings can be suppressed|\d+ (?:catastrophic )?errors? (?:and .*)?detected in the compil|Compilation (?:terminated|aborted)"
    r"|Error limit reached|In file included from|\s+from |\S.*: In (?:function|member function|instantiation|constructor|lambda)"
    r"|ptxas info|ptxas\s+\.|and \d+ catastrophic"
)
_MARK = re.compile(r"\s*\^[~^ ]*$")
_CONTEXT_INDENT = "          "
_INDENT = 2  # The front end shows a line of source behind two blanks
_WORD = re.compile(r"[A-Za-z_]\w*|\d[\w.]*")
_CONTEXT = re.compile(
    r"(?:detected )?(?:during:?\s+)?(?P<what>(?:(?:implicit|explicit|processing|substitution|instantiation|compilation|based)\b.*?))\s+at line "
    r"(?P<line>\d+)(?: of \"?(?P<path>[^\"]+?)\"?)?(?=$|\s+(?:implicit|explicit|processing|substitution|instantiation|compilation|\[))"
)
_MOST_CONTEXTS = 20


def parse_messages(output: str, *, find_line: FindLine | None = None) -> tuple[CompilerMessage, ...]:
    """Messages in a compiler's output, in its order; at most :data:`MOST_MESSAGES`, errors kept first.

    >>> [found] = parse_messages('/src/k.cu(3): error: identifier "y" is undefined')
    >>> str(found.path), found.line, found.text
    ('/src/k.cu', 3, 'identifier "y" is undefined')
    """
    found: list[CompilerMessage] = []
    seen: set[CompilerMessage] = set()
    for message in _read_messages(output, find_line):
        if message not in seen:  # host and device passes say the same twice
            seen.add(message)
            found.append(message)
    if len(found) > MOST_MESSAGES:
        found.sort(key=lambda one: one.severity is not ProblemSeverity.ERROR)
        del found[MOST_MESSAGES:]
    return tuple(found)


def _read_messages(output: str, find_line: FindLine | None) -> Iterator[CompilerMessage]:
    head: re.Match[str] | None = None
    behind: list[str] = []
    output = output.replace("\0", "\n")  # NVRTC leaves one where what the assembler says begins
    for line in output.split("\n", _MOST_LINES)[:_MOST_LINES]:
        text = line[:_LONGEST_LINE].rstrip()
        found = _match(text)
        if found is None and not _NOISE.match(text):
            behind.append(text)
            continue
        if head is not None:
            yield from _build(head, behind, find_line)
        head, behind = found, []
    if head is not None:
        yield from _build(head, behind, find_line)


def _match(line: str) -> re.Match[str] | None:
    if not line or line[0] == " ":
        return None
    # Without these words no pattern can match; they keep hostile lines from the expressions that go back and forth.
    if not any(word in line for word in ("error", "warning", "remark", "note", "fatal", "not found")):
        return None
    for pattern in (_TOOL, _COMMAND_LINE, _ASSEMBLER_PLACE, _FRONT_END, _HOST, _NOT_FOUND):
        found = pattern.fullmatch(line)
        if found is not None:
            return found
    return None


def _build(head: re.Match[str], behind: list[str], find_line: FindLine | None) -> Iterator[CompilerMessage]:
    """A message, and a note for each template or macro on the way to it."""
    groups = head.groupdict()
    kind = (groups.get("kind") or "error").lower()
    path = Path(groups["path"]) if groups.get("path") else None
    line = int(groups["line"]) if groups.get("line") and path is not None else None
    text, echo, context = _split(groups["text"], behind)
    if groups.get("line") and path is None:
        text = f"{text} (line {groups['line']} of the PTX)"
    column = int(groups["column"]) if groups.get("column") else None
    if column is None and echo is not None and path is not None and line is not None:
        column = find_column(*echo, find_line(path, line) if find_line is not None else None)
    yield CompilerMessage(
        severity=_SEVERITIES.get(kind, ProblemSeverity.ERROR),
        text=text[:LONGEST_TEXT],
        path=path,
        line=line or None,
        column=column,
        number=groups.get("number"),
    )
    for what, where, number in read_contexts(context):
        yield CompilerMessage(
            severity=ProblemSeverity.NOTE, text=what[:LONGEST_TEXT], path=Path(where) if where else path, line=number
        )


def _split(text: str, behind: list[str]) -> tuple[str, tuple[str, str] | None, list[str]]:
    """Whole sentence, the source line with its mark, and the lines of context."""
    mark = next((index for index, line in enumerate(behind) if _MARK.match(line)), None)
    echo = (behind[mark - 1], behind[mark]) if mark else None
    before = behind[: mark - 1] if mark else behind
    context = [line for line in behind if line.startswith(_CONTEXT_INDENT) and not _MARK.match(line)]
    first = next((index for index, line in enumerate(context) if line.strip().startswith("detected ")), len(context))
    told = context[first:]
    more = [line.strip() for line in before if line.startswith(_CONTEXT_INDENT) and line not in told]
    return " ".join([text.strip(), *more]), echo, told


def find_column(shown: str, mark: str, line: str | None) -> int | None:
    """Column (1-based, in characters) that a mark under a source line points at.

    Args:
        mark: the line with ``^``.
        line: as it stands in the source; None when it is not known, then what is shown is believed.

    Returns:
        None when the place is not to be found in the source's line, which may have macros where the compiler shows what they stand for.

    >>> find_column("  x = yy;", "      ^", "x = yy;")
    5
    >>> find_column("  __attribute__((global)) void k() { yy; }", " " * 37 + "^", "__global__ void k() { yy; }")
    23
    """
    column = mark.index("^") - _INDENT
    if column < 0:
        return None
    text = shown[_INDENT:]
    # Blanks in front may be tabs there and blanks here; the compiler keeps them.
    if line is None or text.rstrip() == line.rstrip():
        return column + 1
    word = _WORD.match(text, column)
    if word is None:
        return len(line.rstrip()) + 1 if column >= len(text.rstrip()) else None
    place = sum(found.group() == word.group() for found in _WORD.finditer(text, column + 1))
    # Counted from the end: what is replaced stands mostly in front, where declarations begin.
    starts = [found.start() for found in _WORD.finditer(line) if found.group() == word.group()]
    return starts[-1 - place] + 1 if place < len(starts) else None


def read_contexts(lines: Sequence[str]) -> Iterator[tuple[str, str | None, int]]:
    """Instantiation contexts, innermost first: description, file (None for that of the message) and line.

    >>> list(read_contexts(['          detected during instantiation of "void f(T) [with T=int]" at line 2']))
    [('during instantiation of "void f(T) [with T=int]"', None, 2)]
    """
    text = " ".join(line.strip() for line in lines)
    for count, found in enumerate(_CONTEXT.finditer(text)):
        if count >= _MOST_CONTEXTS:
            return
        yield f"during {found['what']}", found["path"], int(found["line"])


_UNDEFINED = re.compile(
    r'identifier "(\w+)" is undefined|has no member "(\w+)"|[\'‘"](\w+)[\'’"] was not declared|no template named [\'"](\w+)'
    r'|"?(texture|surface)"? is not a template'
)
_TEXTURES = "texture references were removed in CUDA 12; use texture objects (cudaCreateTextureObject)"
_SHUFFLES = "it was removed in CUDA 9; use {} with a mask of the lanes that take part"
_PROPERTY = "CUDA 13 removed it from cudaDeviceProp; ask cudaDeviceGetAttribute"
_WITHOUT_MASK = "without '.sync' is not supported"
_RENAMED = {
    "cudaThreadSynchronize": "cudaDeviceSynchronize",
    "cudaThreadExit": "cudaDeviceReset",
    "cudaThreadSetLimit": "cudaDeviceSetLimit",
    "cudaThreadGetLimit": "cudaDeviceGetLimit",
    "cudaThreadSetCacheConfig": "cudaDeviceSetCacheConfig",
    "cudaThreadGetCacheConfig": "cudaDeviceGetCacheConfig",
}
_TEXTURE_NAMES = (
    "texture", "surface", "cudaBindTexture", "cudaBindTexture2D", "cudaBindTextureToArray", "cudaUnbindTexture",
    "cudaGetTextureReference", "cudaGetTextureAlignmentOffset", "cudaBindSurfaceToArray", "textureReference",
)  # fmt: skip
_WARP_NAMES = ("__shfl", "__shfl_up", "__shfl_down", "__shfl_xor", "__any", "__all", "__ballot")
_DEVICE_NAMES = {
    "mul24": "__mul24", "umul24": "__umul24", "mulhi": "__mulhi", "umulhi": "__umulhi", "mul64hi": "__mul64hi", "umul64hi": "__umul64hi",
    "saturate": "__saturatef", "int_as_float": "__int_as_float", "float_as_int": "__float_as_int", "sad": "__sad", "usad": "__usad",
}  # fmt: skip
_PROPERTIES = (
    "clockRate", "memoryClockRate", "deviceOverlap", "computeMode", "kernelExecTimeoutEnabled", "maxTexture1DLinear",
    "singleToDoublePrecisionPerfRatio", "cooperativeMultiDeviceLaunch",
)  # fmt: skip
# Source: release notes of CUDA 9.0, 12.0 and 13.0, deprecated and dropped features; headers of CUDA 13.0. Functions of the device without underscores
# were in ``device_functions.h`` up to CUDA 8; headers of CUDA 13.0 do not have them.
_REMEDIES = {
    **{old: f"it was removed in CUDA 13; use {new}" for old, new in _RENAMED.items()},
    **dict.fromkeys(_TEXTURE_NAMES, _TEXTURES),
    **{name: _SHUFFLES.format(f"{name}_sync") for name in _WARP_NAMES},
    **dict.fromkeys(_PROPERTIES, _PROPERTY),
    **{old: f"CUDA has it no more; use {new}" for old, new in _DEVICE_NAMES.items()},
}


def find_remedy(text: str) -> str | None:
    """Replacement for a removed name that a message is about; None for other messages.

    >>> find_remedy('identifier "cudaThreadSynchronize" is undefined')
    'it was removed in CUDA 13; use cudaDeviceSynchronize'
    >>> find_remedy('identifier "x" is undefined') is None
    True
    """
    found = _UNDEFINED.search(text)
    if found is None:
        return None
    return next((_REMEDIES[name] for name in found.groups() if name in _REMEDIES), None)


def is_about_references(text: str) -> bool:
    """Whether a message is about the declaration of a texture or surface reference.

    >>> is_about_references("texture is not a template"), is_about_references('identifier "cudaBindTexture" is undefined')
    (True, False)
    """
    found = _UNDEFINED.search(text)
    return found is not None and any(one in ("texture", "surface") for one in found.groups())


def list_replacements(text: str) -> tuple[str, ...]:
    """Macros, as after ``-D``, that map removed warp functions to their successors, if a message is about one.

    >>> list_replacements('identifier "__any" is undefined')[-2:], list_replacements('identifier "x" is undefined')
    (('__all(...)=__all_sync(0xffffffffu, __VA_ARGS__)', '__ballot(...)=__ballot_sync(0xffffffffu, __VA_ARGS__)'), ())
    """
    found = _UNDEFINED.search(text)
    is_warps = found is not None and any(one in _WARP_NAMES for one in found.groups())
    if not is_warps and _WITHOUT_MASK not in text:
        return ()
    return tuple(f"{name}(...)={name}_sync(0xffffffffu, __VA_ARGS__)" for name in _WARP_NAMES)


def list_spellings(text: str) -> tuple[str, ...]:
    """Macros, as after ``-D``, that map old device functions to their current names, if a message is about one.

    >>> list_spellings('identifier "mul24" is undefined')[:2], list_spellings('identifier "x" is undefined')
    (('mul24=__mul24', 'umul24=__umul24'), ())
    """
    found = _UNDEFINED.search(text)
    if found is None or not any(one in _DEVICE_NAMES for one in found.groups()):
        return ()
    return tuple(f"{old}={new}" for old, new in _DEVICE_NAMES.items())


def explain_removed_names(unit: CompiledUnit) -> CompiledUnit:
    """Unit with a remedy appended to each message about a removed name."""
    return replace(unit, messages=tuple(_explain(one) for one in unit.messages))


def _explain(message: CompilerMessage) -> CompilerMessage:
    remedy = find_remedy(message.text)
    return message if remedy is None else replace(message, text=f"{message.text}; {remedy}")
