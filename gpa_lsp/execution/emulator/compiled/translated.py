"""Kernels that run for long, translated whole while the core executes them operation by operation: :class:`Translation`."""

import hashlib
import logging
import threading
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from gpa_lsp.code.ptx.model import Space
from gpa_lsp.execution.emulator.compiled import addresses, pieces, transfers
from gpa_lsp.execution.emulator.compiled.core_functions import find_lane_names, may_translate, read_sources
from gpa_lsp.execution.emulator.compiled.lane_operations import LaneFunction, write_expressions
from gpa_lsp.execution.emulator.compiled.lowering import Operation
from gpa_lsp.execution.emulator.compiled.model import LOAD, MOST_FUNCTIONS, NOT_ZERO, STORE
from gpa_lsp.execution.emulator.compiled.program import CompiledKernel, Piece, find_pieces, list_read_by_python
from gpa_lsp.execution.emulator.compiled.transfers import MARK_READ, MARK_WRITTEN
from gpa_lsp.foundation.machine_code import types
from gpa_lsp.foundation.machine_code.build import Code, load_module
from gpa_lsp.foundation.machine_code.translate import Written, read_functions, translate
from gpa_lsp.foundation.machine_code.values import TranslationError
from gpa_lsp.foundation.records import ColumnRecord


def name_piece(piece: Piece) -> str:
    """Name of a piece's function."""
    return f"piece_{piece.first}"


def write_pieces(chosen: Iterable[Piece]) -> str:
    """Typed Python with a function for each piece."""
    names: dict[LaneFunction, str] = {}
    written = [_Writer(piece, names).write() for piece in chosen]
    return "\n".join((write_expressions({name: one for one, name in names.items()}), *written))


def read_pieces(text: str) -> list[Written]:
    """The functions ``piece_…`` of a text."""
    names = {**vars(types), **find_lane_names(), **vars(addresses), **vars(transfers), **vars(pieces)}
    return [one for name, one in read_functions(text, names, "pieces").items() if name.startswith("piece_")]


class _Writer:
    """Writes one piece.

    Args:
        piece: it.
        names: of functions of lanes, to which those of the piece are added.
    """

    def __init__(self, piece: Piece, names: dict[LaneFunction, str]) -> None:
        self._piece = piece
        self._functions = names
        self._before: list[str] = []  # the warps
        self._lines: list[str] = []
        self._counted: list[str] = []
        self._sizes: dict[int, int] = {}  # of what was written, by place
        self._versions: dict[int, int] = {}
        self._masks: dict[tuple[int, int, int], str] = {}
        self._lies: dict[tuple[int, int, int, int], tuple[str, str]] = {}
        self._names = 0

    def write(self) -> str:
        """The function."""
        piece = self._piece
        for number, operation in enumerate(piece.operations, piece.first):
            if operation["code"] < MOST_FUNCTIONS:
                self._compute(operation)
            else:
                {LOAD: self._load, STORE: self._store, NOT_ZERO: self._check_not_zero}[operation["code"]](
                    number, operation
                )
        kept = [
            f"blend(view(frame + {place}, u{8 * size}), {self._name_value(place)}, written)"
            for place, size in sorted(self._sizes.items())
            if place in piece.needed
        ]
        return "\n".join(
            (
                f"def {name_piece(piece)}(machine: CoreMachine, start: s64) -> s64:",
                *(
                    f"    if are_apart(machine, {one}, {other}) == 0:\n        return FAILED"
                    for one, other in piece.apart
                ),
                "    constants = machine.constants",
                *(f"    {line}" for line in self._before),
                "    for warp in range(start, machine.warps):",
                "        standing = machine.current[warp]",
                "        if standing == 0:",
                "            continue",
                "        exists = machine.exists[warp]",
                "        frame = machine.frames + warp * machine.frame_bytes + machine.base",
                *(f"        {line}" for line in self._lines),
                *(f"        {line}" for line in self._counted),
                "        written = find_written(standing, exists)",
                *(f"        {line}" for line in kept),
                "    return machine.warps",
            )
        )

    def _name(self, kind: str) -> str:
        self._names += 1
        return f"{kind}_{self._names}"

    def _name_value(self, place: int) -> str:
        return f"v{place}_{self._sizes[place]}"

    def _find(self, place: int) -> str:
        """Expression of an operand: a place in memory or, where the piece wrote it, lanes."""
        if place < 0:
            return f"constants + {~place}"
        return self._name_value(place) if place in self._sizes else f"frame + {place}"

    def _read(self, place: int, size: int) -> str:
        """Expression of the lanes of an operand, as unsigned numbers; zeros where the piece wrote it in another size, which is never read."""
        if self._sizes.get(place, size) != size:
            return f"all_lanes(u{8 * size}(0))"
        if place in self._sizes:
            return f"view_lanes({self._name_value(place)}, u{8 * size})"
        return f"lanes(view({self._find(place)}, u{8 * size}))"

    def _write(self, place: int, size: int, text: str) -> None:
        """Give a place other lanes."""
        self._sizes[place] = size
        self._versions[place] = self._versions.get(place, 0) + 1
        self._lines.append(f"{self._name_value(place)} = {text}")

    def _find_mask(self, operation: Operation) -> str:
        """The lanes whose guard holds."""
        guard = operation["guard"]
        if guard < 0:
            return "standing"
        key = guard, self._versions.get(guard, 0), operation["is_negated"]
        found = self._masks.get(key)
        if found is None:
            found = self._masks[key] = self._name("mask")
            holds = f"mask_of({self._read(guard, 1)} != 0)"
            self._lines.append(f"{found} = standing & {'~' if operation['is_negated'] else ''}{holds}")
        return found

    def _count(self, operation: Operation, mask: str) -> None:
        if operation["guard"] >= 0 and operation["counts"]:
            self._counted.append(f"machine.guarded[{operation['instruction']}] += s64(popcount({mask}))")

    def _compute(self, operation: Operation) -> None:
        mask = self._find_mask(operation)
        self._count(operation, mask)
        chosen = ""
        if operation["guard"] >= 0:
            chosen = f" if lanes_of(find_written({mask}, exists)) else "
        function = operation["function"]
        name = self._functions.setdefault(function, f"operation_{len(self._functions)}")
        operands = ", ".join(self._find(operation[one]) for one in "abc")
        found = [(operation["result"], function.bits // 8, f"as_bits({name}({operands}))")]
        if operation["other_result"] >= 0:
            found.append((operation["other_result"], 1, f"{name}_other({operands})"))
        if len(found) > 1:  # both are computed before either is written
            values = [(place, size, self._name("value"), text) for place, size, text in found]
            self._lines += [f"{value} = {text}" for _, _, value, text in values]
            found = [(place, size, value) for place, size, value, _ in values]
        for place, size, text in found:
            if place >= 0:
                self._write_some(place, size, text, chosen)

    def _write_some(self, place: int, size: int, text: str, chosen: str) -> None:
        """Give the lanes that are chosen other values."""
        self._write(place, size, f"({text}){chosen}{self._read(place, size)}" if chosen else text)

    def _open_access(self, number: int, operation: Operation) -> tuple[str, str, str, str]:
        """Write the beginning of an access, which leaves the warp to single operations where it does not fit.

        Returns:
            Names of the mask, of the pointer that addresses count from, of the addresses and of their layout.
        """
        mask = self._find_mask(operation)
        self._count(operation, mask)
        size, site = operation["elements"] * operation["element_bytes"], f"site_{number}"
        self._before.append(f"{site} = local(Site)")
        memory = f"{site}.memory"
        if operation["space"] == Space.SHARED:
            self._before.append(f"find_shared(machine, {size}, {site})")
            memory += " + s64(machine.slots[warp]) * machine.shared_stride"
        else:
            flags = f"{operation['code'] == LOAD}, {operation['space'] == Space.GENERIC}"
            self._before.append(f"find_global(machine, {number}, {flags}, {size}, {site})")
        lie, address = self._find_lie(operation, mask, size)
        offset = operation["literal"] & ((1 << 64) - 1)
        is_asked = "" if mask == "standing" else f"{mask} != 0 and "
        self._lines += [f"if {is_asked}not fits({lie}, {site}, u64({offset}), {size}):", "    return warp"]
        if operation["space"] != Space.SHARED:
            marks = MARK_READ if operation["code"] == LOAD else MARK_WRITTEN
            self._lines.append(f"mark_access(machine, {address}, {lie}, u64({offset}), {size}, {mask}, {marks})")
        base = self._name("base")
        self._lines.append(f"{base} = {memory} + {operation['literal']}")
        return mask, base, address, lie

    def _find_lie(self, operation: Operation, mask: str, size: int) -> tuple[str, str]:
        """Names of the addresses' layout and of the addresses, without their offset."""
        place = operation["a"]
        key = place, self._versions.get(place, 0), size, operation["address_bytes"]
        if mask == "standing" and key in self._lies:
            return self._lies[key]
        lie, address = self._name("lie"), self._name("address")
        self._before.append(f"{lie} = local(Lie)")
        self._lines.append(f"{address} = u64({self._read(place, operation['address_bytes'])})")
        self._lines.append(f"find_lie({address}, {size}, {mask}, {lie})")
        if mask == "standing":
            self._lies[key] = lie, address
        return lie, address

    def _load(self, number: int, operation: Operation) -> None:
        width, size = operation["register_bytes"], operation["element_bytes"]
        mask, base, address, lie = self._open_access(number, operation)
        is_part = operation["elements"] > 1
        for element, place in enumerate(list(operation["places"])[: operation["elements"]]):
            if place < 0:
                continue
            how = f"{base} + {element * size}, {address}, {lie}, {is_part}, {mask}, {self._read(place, width)}"
            kind = f"{'s' if operation['is_signed'] else 'u'}{8 * size}"
            if width == size:
                self._write(place, width, f"load(u{8 * size}, {how})")
            else:
                self._write(place, width, f"load_narrow({kind}, u{8 * width}, {how})")

    def _store(self, number: int, operation: Operation) -> None:
        width, size = operation["register_bytes"], operation["element_bytes"]
        mask, base, address, lie = self._open_access(number, operation)
        is_part = operation["elements"] > 1
        for element, place in enumerate(list(operation["places"])[: operation["elements"]]):
            values = self._read(place, width if place >= 0 else size)
            how = f"{base} + {element * size}, {address}, {lie}, {is_part}, {mask}, {values}"
            self._lines.append(f"store(u{8 * size}, {how})")

    def _check_not_zero(self, _: int, operation: Operation) -> None:
        mask = self._find_mask(operation)
        self._count(operation, mask)
        self._lines += [
            f"if has_zero({self._read(operation['a'], operation['element_bytes'])}, {mask}):",
            "    return warp",
        ]


_LOG = logging.getLogger(__name__)

# A kernel is translated when so much of it was executed operation by operation: about as long as that takes
HOT_WARP_INSTRUCTIONS = 1 << 25
_OPERATIONS_A_SECOND = 100  # That are translated; kernels of more must have been executed for longer
_MOST_OPERATIONS = 2000  # Kernels of more stay as they are: to translate them takes half a minute
_MOST_TRANSLATIONS = 64


class PieceTable(ColumnRecord, frozen=True, kw_only=True):
    """Pieces, for the core."""

    functions: npt.NDArray[np.uint64]  # uint64 by operation, the address of the piece that begins with it; 0 for none
    ends: npt.NDArray[np.int64]  # int64 by operation, the first one behind that piece
    code: Code  # that has them


class Translation:
    """Translation of one kernel into machine code, shared by all its launches, from any thread.

    Args:
        checks_shared: shared memory is watched.
    """

    def __init__(self, *, checks_shared: bool) -> None:
        self._checks_shared = checks_shared
        self._executed = 0
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self.table: PieceTable | None = None

    def count(self, kernel: CompiledKernel, warp_instructions: int, *, is_seen: bool) -> None:
        """Count what was executed; begin the translation, in a thread, once it is enough."""
        with self._lock:
            self._executed += warp_instructions
            enough = HOT_WARP_INSTRUCTIONS * max(1, len(kernel.operations) // _OPERATIONS_A_SECOND)
            if self._thread is None and is_seen and self._executed >= enough:
                pieces = self._find_pieces(kernel)
                self._thread = threading.Thread(target=self._make, args=(pieces, len(kernel.operations)), daemon=True)
                self._thread.start()

    def wait(self) -> None:
        """Wait until the translation has ended, where it was begun."""
        if self._thread is not None:
            self._thread.join()

    def _find_pieces(self, kernel: CompiledKernel) -> list[Piece]:
        if len(kernel.operations) > _MOST_OPERATIONS:
            return []
        return find_pieces(kernel, checks_shared=self._checks_shared)

    def _make(self, pieces: list[Piece], operations: int) -> None:
        if not pieces:
            return
        text = write_pieces(pieces)
        try:
            code = load_module(
                lambda: translate(read_pieces(text), name="pieces"), (*read_sources(), text), name="pieces"
            )
        except TranslationError as error:
            _LOG.warning("a kernel is executed operation by operation: %s", error)
            return
        functions, ends = np.zeros(operations, np.uint64), np.zeros(operations, np.int64)
        for piece in pieces:
            functions[piece.first] = code.find_address(name_piece(piece))
            ends[piece.first] = piece.end
        self.table = PieceTable(functions=functions, ends=ends, code=code)


class Translations:
    """Translations of this process, by the operations of their kernels."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[bytes, Translation] = {}

    def find(self, kernel: CompiledKernel, *, checks_shared: bool) -> Translation | None:
        """The translation of a kernel; None where translation is switched off."""
        if not may_translate():
            return None
        noted = ("region", "is_known")  # while it ran; of the fields alone, for bytes between them may be anything
        fields = [
            kernel.operations[name].tobytes() for name in kernel.operations.dtype.names or () if name not in noted
        ]
        fields += [kernel.table[name].tobytes() for name in kernel.table.dtype.names or ()]
        digest = hashlib.sha256(b"".join(fields))
        digest.update(f"{checks_shared} {list_read_by_python(kernel)}".encode())
        with self._lock:
            if len(self._known) >= _MOST_TRANSLATIONS:
                self._known.clear()
            return self._known.setdefault(digest.digest(), Translation(checks_shared=checks_shared))

    def wait(self) -> int:
        """Wait until all translations have ended; the number that succeeded."""
        with self._lock:
            known = list(self._known.values())
        for one in known:
            one.wait()
        return sum(one.table is not None for one in known)


TRANSLATIONS = Translations()  # Translations of kernels, which others of the same operations share
