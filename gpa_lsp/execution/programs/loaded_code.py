"""The code a program registered, unpacked and parsed when it is first needed (:class:`LoadedModule`), its units linked (:func:`link_parts`)."""

import hashlib
import os
import re
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from gpa_lsp.code.binary.containers import FATBIN_MAGIC, read_built_ptx
from gpa_lsp.code.binary.cubin import read_cubin
from gpa_lsp.code.binary.elf import ELF_MAGIC
from gpa_lsp.code.ptx.model import PtxFunction
from gpa_lsp.code.ptx.parse import blank_comments, parse_ptx
from gpa_lsp.code.ptx.source_parameters import SourceParameter, read_source_parameters
from gpa_lsp.execution.compiler.model import CompiledUnit
from gpa_lsp.execution.compiler.ptx_files import is_ptx_file, list_built_ptx, read_build
from gpa_lsp.execution.emulator.emulate import find_static_shared_bytes
from gpa_lsp.execution.emulator.resident import ResidentMemory, ResidentModule
from gpa_lsp.execution.launches.pointer_uses import find_pointer_uses
from gpa_lsp.execution.launches.type_names import find_type
from gpa_lsp.foundation.errors import GpaError, InputError
from gpa_lsp.foundation.files import atomic_write
from gpa_lsp.foundation.processes.watched_command import TEMPORARY

_POINTER_BYTES = 8
# Reported if the code was never assembled; only occupancy and attributes depend on it
_UNKNOWN_REGISTERS = 32

REBUILD = (
    "build it with -cudart shared -gencode arch=compute_80,code=compute_80, or give its build command with --build"
)


class FunctionFacts(Struct, frozen=True, kw_only=True):
    """Properties of a kernel that its program can ask for."""

    kernel: PtxFunction  # as parsed
    registers: int  # of a thread
    static_shared_bytes: int  # of a block
    most_threads: int  # of a block
    sources: tuple[SourceParameter, ...]  # names and types of the parameters, where the source is at hand; else empty

    def name_arrays(self, parameters: bytes, memory: ResidentMemory) -> dict[int, tuple[str, int]]:
        """The allocations, also freed ones, that parameters point to: base → the parameter's name, and the bytes of an element."""
        uses = find_pointer_uses(self.kernel)
        found: dict[int, tuple[str, int]] = {}
        for number, parameter in enumerate(self.kernel.parameters):
            if parameter.size_bytes != _POINTER_BYTES:
                continue
            start = parameter.offset_bytes
            address = int.from_bytes(parameters[start : start + _POINTER_BYTES], "little")
            region = memory.find(address) or memory.find_freed(address)
            if region is None:
                continue
            use = uses.get(parameter.name)
            source = self.sources[number] if self.sources else None
            declared = None if source is None else find_type(source.type)
            size = declared.bytes if declared is not None else 1 if use is None or use.type is None else use.type.bytes
            name = source.name if source is not None and source.name else f"argument {number + 1}"
            found.setdefault(region.base, (name, size))
        return found


class LoadedModule:
    """One fat binary of the program.

    Args:
        path: where its bytes were put.
        memory: where its variables go.
        capability: of the GPU the program sees; newer code does not run on it.

    Attributes:
        content: those bytes.
        unit: the code that was chosen.

    Raises:
        GpaError: it holds no PTX that runs on this GPU.
    """

    def __init__(self, path: Path, memory: ResidentMemory, capability: tuple[int, int]) -> None:
        self.path = path
        self.content = path.read_bytes()  # the file is gone once the program was ended
        units = [unit for unit in read_build(path, assembles=False) if unit.ptx is not None]
        fitting = [unit for unit in units if unit.compute_capability <= capability]
        if units and not fitting and not is_ptx_file(path):  # there may also be code for older GPUs
            fitting = [unit for unit in list_built_ptx(path) if unit.compute_capability <= capability]
        if not units:
            raise GpaError(f"its kernels come as machine code only, without PTX; {REBUILD}")
        if not fitting:
            oldest = min(unit.compute_capability for unit in units)
            wanted = ".".join(map(str, oldest))
            raise GpaError(f"its PTX is for compute capability {wanted} and newer; choose such a GPU with --machine")
        self.unit: CompiledUnit = max(fitting, key=lambda unit: unit.compute_capability)
        self.resident = ResidentModule(parse_ptx(self.unit.ptx or "", name=f"the PTX of {path.name}"), memory)
        self._functions = {} if self.unit.cubin is None else read_cubin(self.unit.cubin).functions

    def describe(self, name: str) -> FunctionFacts | None:
        """A kernel; None where there is none of this name."""
        kernel = next((entry for entry in self.resident.module.entries if entry.name == name), None)
        if kernel is None:
            return None
        compiled = self._functions.get(name)
        return FunctionFacts(
            kernel=kernel,
            registers=(compiled.registers if compiled is not None else None) or _UNKNOWN_REGISTERS,
            static_shared_bytes=find_static_shared_bytes(self.resident.module, kernel),
            most_threads=kernel.max_threads or 1024,
            sources=read_sources(kernel),
        )


def find_source(kernel: PtxFunction) -> Path | None:
    """The file a kernel is written in; None if it has no line table."""
    chain = next((one.chain for one in kernel.instructions if one.chain), None)
    return None if chain is None else Path(chain[-1].file)


def read_sources(kernel: PtxFunction) -> tuple[SourceParameter, ...]:
    """Names and types of the parameters, where the source is at hand and has as many of them."""
    path = find_source(kernel)
    if path is None:
        return ()
    try:
        found = read_source_parameters(path.name, path.read_text(encoding="utf-8", errors="replace"), kernel.name)
    except OSError:
        return ()
    return found if len(found) == len(kernel.parameters) else ()


_NAME_DIGITS = 12
_TRITON_CACHE_VARIABLE = "TRITON_CACHE_DIR"
_TRITON_HOME_VARIABLE = "TRITON_HOME"
_MOST_SEARCHED = 20_000


def place_image(content: bytes, folder: Path) -> Path:
    """Write a fat binary, machine code or PTX to a file named by what it holds.

    Of machine code from Triton, the PTX beside it in Triton's cache is taken.

    Raises:
        GpaError: it cannot be written.
    """
    suffix = ".fatbin" if content.startswith(FATBIN_MAGIC) else ".cubin" if content.startswith(ELF_MAGIC) else ".ptx"
    if suffix == ".cubin":
        ptx = _find_triton_ptx(content)
        content, suffix = (content, suffix) if ptx is None else (ptx, ".ptx")
    path = folder / f"{hashlib.sha256(content).hexdigest()[:_NAME_DIGITS]}{suffix}"
    try:
        with atomic_write(path, encoding=None) as stream:
            stream.write(content.rstrip(b"\0") if suffix == ".ptx" else content)
    except OSError as error:
        raise GpaError(f"{path} cannot be written: {error.strerror or error}") from error
    return path


def _find_triton_ptx(cubin: bytes) -> bytes | None:
    """PTX that Triton cached beside a cubin; None if its cache does not have it.

    The end of a loaded image is only estimated, so the cached one may be slightly longer. Newest folders are searched first.
    """
    named = os.environ.get(_TRITON_CACHE_VARIABLE)
    home = Path(os.environ.get(_TRITON_HOME_VARIABLE, "~")).expanduser()
    try:
        folders = sorted(
            os.scandir(named or home / ".triton" / "cache"), key=lambda one: one.stat().st_mtime, reverse=True
        )
        for folder in folders[:_MOST_SEARCHED]:
            for path in Path(folder.path).glob("*.cubin"):
                if 0 <= path.stat().st_size - len(cubin) < 4096 and path.read_bytes()[: len(cubin)] == cubin:
                    return path.with_suffix(".ptx").read_bytes()
    except OSError:
        return None
    return None


_HEAD_BYTES = 16  # Of a fat binary: its last 8 are the size of what follows. Source: cuda-binary-utilities.
_MOST_PARTS = 4096
_VERSION = re.compile(r"^\s*\.version\s+(\d+)\.(\d+)", re.MULTILINE)
_TARGET = re.compile(r"^\s*\.target\s+sm_(\d+)", re.MULTILINE)
_LINE_DIRECTIVE = re.compile(r"\.(?:version|target|address_size|file|loc)\b[^\n]*")
_HEAD = re.compile(
    r"(?P<linkage>(?:\.(?:extern|visible|weak|common)\s+)*)\.(?P<kind>func|entry|section|pragma|alias|[a-z]+)\b"
)
_FUNCTION_NAME = re.compile(r"\.(?:func|entry)\s*(?:\.\w+\s*)*(?:\([^)]*\)\s*)?([\w$%]+)")
_VARIABLE_NAME = re.compile(r"([\w$%]+)\s*(?:\[[^\]]*\]\s*)*(?:=|;)")
_BRACE = re.compile(r"\"[^\"\n]*+\"|[{}]")
_FILE = re.compile(r"\.file\s+(\d+)")
_LOC = re.compile(r"(\.loc\s+|\binlined_at\s+)(\d+)")
_STRING_LABEL = "$L__info_string"
_DEBUG_STRINGS = ".section"
_NOT_LINKED = ("version", "target", "address_size")


class _Piece(Struct, frozen=True, kw_only=True):
    """A declaration, definition or directive at the outermost level of a module."""

    kind: str  # ``func``, ``entry``, ``section``, ``file``, ``global`` and so on
    linkage: str  # ``extern``, ``visible``, ``weak`` or ``common``; empty where only its own unit knows it
    name: str  # of the function or variable; else empty
    text: str  # all of it
    has_body: bool = False  # of functions

    @property
    def is_definition(self) -> bool:
        """Whether it is a function with its body, or a variable's definition."""
        return bool(self.name) and self.linkage != "extern" and (self.has_body or self.kind not in {"func", "entry"})


def link_parts(content: bytes, capability: tuple[int, int]) -> str:
    """Device code of a program that was linked from several units, as one PTX text.

    Raises:
        GpaError: no unit has PTX for it.
    """
    texts = [text for part in _split_parts(content) if (text := _choose(part, capability)) is not None]
    if not any(".entry" in text for text in texts):
        raise GpaError("no unit that it was linked from has PTX for this GPU")
    return link_texts(texts)


def link_texts(texts: Sequence[str]) -> str:
    """Link PTX texts into one module; units see each other's functions and variables.

    What only one unit knows gets a name of its own where another has the same; of weak definitions the first stays.

    Raises:
        InputError: a unit is no PTX.
    """
    units = _name_apart(_number_apart([_split_pieces(blank_comments(text.rstrip("\0"))) for text in texts]))
    defined: dict[str, _Piece] = {}
    for piece in (piece for unit in units for piece in unit):
        before = defined.get(piece.name)
        if piece.is_definition and (before is None or before.linkage in {"weak", "common"}):
            defined[piece.name] = piece
    return _write(units, defined, max(texts, key=_rank))


def _split_parts(content: bytes) -> list[bytes]:
    parts: list[bytes] = []
    place = 0
    while place + _HEAD_BYTES <= len(content) and len(parts) < _MOST_PARTS:
        size = int.from_bytes(content[place + 8 : place + _HEAD_BYTES], "little")
        end = place + int.from_bytes(content[place + 6 : place + 8], "little") + size
        if content[place : place + 4] != FATBIN_MAGIC or end > len(content):
            raise InputError("a part of the program's device code is damaged")
        parts.append(content[place:end])
        place = end
    return parts


def _choose(part: bytes, capability: tuple[int, int]) -> str | None:
    """Newest PTX of a unit that runs on a GPU; None if it has none."""
    with tempfile.TemporaryDirectory(prefix=TEMPORARY, ignore_cleanup_errors=True) as name:
        path = Path(name) / "part.fatbin"
        path.write_bytes(part)
        fitting = [text for text in read_built_ptx(path) if _find_target(text) <= capability[0] * 10 + capability[1]]
    return max(fitting, key=_find_target, default=None)


def _find_target(text: str) -> int:
    found = _TARGET.search(text)
    return int(found[1]) if found else 0


def _rank(text: str) -> tuple[int, int, int]:
    """Language version, then target."""
    found = _VERSION.search(text)
    return (int(found[1]), int(found[2]), _find_target(text)) if found else (0, 0, 0)


def _split_pieces(text: str) -> list[_Piece]:
    pieces: list[_Piece] = []
    place = 0
    while True:
        while place < len(text) and (text[place].isspace() or text[place] == ";"):
            place += 1
        if place == len(text):
            return pieces
        line = _LINE_DIRECTIVE.match(text, place)
        if line is not None:
            pieces.append(_Piece(kind=line[0][1:].split(None, 1)[0], linkage="", name="", text=line[0]))
            place = line.end()
            continue
        piece = _read_piece(text, place)
        pieces.append(piece)
        place += len(piece.text)


def _read_piece(text: str, place: int) -> _Piece:
    head = _HEAD.match(text, place)
    if head is None:
        raise InputError(f"{text[place : place + 40]!r} is not part of a module")
    kind = head["kind"]
    linkage = next((word for word in ("extern", "weak", "common", "visible") if word in head["linkage"]), "")
    semicolon, brace = text.find(";", place), text.find("{", place)
    has_body = kind in {"func", "entry", "section"} and brace >= 0 and not 0 <= semicolon < brace
    end = _close(text, brace) if has_body else semicolon + 1 or len(text)
    found = text[place:end]
    if kind in {"func", "entry"}:
        match = _FUNCTION_NAME.search(found)
    else:
        match = None if kind in {"section", "pragma", "alias"} else _VARIABLE_NAME.search(found)
    return _Piece(kind=kind, linkage=linkage, name=match[1] if match else "", text=found, has_body=has_body)


def _close(text: str, place: int) -> int:
    depth = 0
    for match in _BRACE.finditer(text, place):
        depth += {"{": 1, "}": -1}.get(match[0], 0)
        if depth == 0:
            return match.end()
    return len(text)


def _number_apart(units: Sequence[Sequence[_Piece]]) -> list[list[_Piece]]:
    """Renumber files and string labels of line tables so that no two units share one."""
    found = []
    first = 0
    for number, unit in enumerate(units):
        numbers = [int(match[1]) for piece in unit if (match := _FILE.match(piece.text))]
        label = f"{_STRING_LABEL}_{number}_"

        def change(piece: _Piece, first: int = first, label: str = label) -> _Piece:
            text = piece.text.replace(_STRING_LABEL, label)
            if piece.kind == "file":
                text = _FILE.sub(lambda match: f".file {int(match[1]) + first}", text, count=1)
            text = _LOC.sub(lambda match: f"{match[1]}{int(match[2]) + first}", text)
            return replace(piece, text=text)

        found.append([change(piece) for piece in unit])
        first += max(numbers, default=0)
    return found


def _name_apart(units: Sequence[Sequence[_Piece]]) -> list[list[_Piece]]:
    """Rename private names of a unit that another unit has as well."""
    owners: dict[str, int] = {}
    found = []
    for number, unit in enumerate(units):
        own = [piece.name for piece in unit if piece.is_definition]
        private = {piece.name for piece in unit if piece.is_definition and not piece.linkage and piece.kind != "entry"}
        taken = {name: f"{name}__unit_{number + 1}" for name in private if owners.get(name, number) != number}
        for name in own:
            owners.setdefault(name, number)
        found.append([_rename(piece, taken) for piece in unit] if taken else list(unit))
    return found


def _rename(piece: _Piece, names: dict[str, str]) -> _Piece:
    listed = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
    text = re.sub(rf"(?<![\w$%.])(?:{listed})(?![\w$])", lambda match: names[match[0]], piece.text)
    return replace(piece, text=text, name=names.get(piece.name, piece.name))


def _write(units: Iterable[Sequence[_Piece]], defined: dict[str, _Piece], newest: str) -> str:
    declared: dict[str, str] = {}
    variables: list[str] = []
    functions: list[str] = []
    strings: list[str] = []
    other: list[str] = []
    for piece in (piece for unit in units for piece in unit):
        definition = defined.get(piece.name)
        if piece.kind in _NOT_LINKED or piece.kind == "loc":
            continue
        if piece.kind in {"func", "entry"}:
            if piece is definition:
                functions.append(piece.text)
            elif not piece.has_body:
                linkage = "extern" if definition is None else definition.linkage
                text = _HEAD.sub(lambda match, linkage=linkage: _link(match, linkage), piece.text, count=1)  # type: ignore[misc]
                declared.setdefault(piece.name, text)
        elif piece.kind == "section":
            if piece.text.startswith(_DEBUG_STRINGS) and ".debug_str" in piece.text[:40]:
                strings.append(piece.text[piece.text.index("{") + 1 : -1])
        elif piece.name:
            if piece is definition or (definition is None and piece.name not in declared):
                variables.append(piece.text)
                declared.setdefault(piece.name, "")
        else:
            other.append(piece.text)
    version = _VERSION.search(newest)
    target = re.search(r"^\s*\.target[^\n]*", newest, re.MULTILINE)
    head = [version[0].strip() if version else "", target[0].strip() if target else "", ".address_size 64"]
    section = [".section .debug_str\n{" + "\n".join(strings) + "}"] if strings else []
    listed = [text for text in declared.values() if text]
    return "\n".join([*head, *listed, *variables, *functions, *other, *section]) + "\n"


def _link(match: re.Match[str], linkage: str) -> str:
    return f".{linkage} .{match['kind']}" if linkage else f".{match['kind']}"
