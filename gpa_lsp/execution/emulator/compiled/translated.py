"""Kernels that run for long, written in C while the interpreter executes them: :class:`Translation`."""

import ctypes
import hashlib
import logging
import threading
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from gpa_lsp.code.ptx.model import Space
from gpa_lsp.execution.emulator.compiled.lowering import Operation
from gpa_lsp.execution.emulator.compiled.model import DIVIDE, LANES, LOAD, PYTHON, STORE, list_codes
from gpa_lsp.execution.emulator.compiled.program import (
    CompiledKernel,
    Piece,
    find_pieces,
    list_read_by_python,
    list_written,
)
from gpa_lsp.foundation.errors import GpaError
from gpa_lsp.foundation.native.shared_library import may_translate, open_source
from gpa_lsp.foundation.records import ColumnRecord

_MOST_IN_A_LOOP = 24  # Operations that the C compiler sees at once
# Operations that are no vector instructions everywhere: they would keep others from being one
_ALONE = ("popc_", "clz_", "brev_", "mulhi_u64", "mulhi_s64", "cvt_f32_", "cvt_f64_")
_LINE_BYTES = 64  # Of a cache
_TYPES = {1: "uint8_t", 2: "uint16_t", 4: "uint32_t", 8: "uint64_t"}
_COMBINED = {0: "{0}", 1: "({0} & with)", 2: "({0} | with)", 3: "({0} ^ with)"}


def name_piece(piece: Piece) -> str:
    """Of its function."""
    return f"piece_{piece.first}"


def translate(pieces: Iterable[Piece]) -> str:
    """A source with a function for each piece."""
    return "\n".join(['#include "pieces.h"', *(_Writer(piece).write() for piece in pieces)])


class _Writer:
    """Writes one piece.

    Args:
        piece: it.
    """

    def __init__(self, piece: Piece) -> None:
        self._piece = piece
        self._before: list[str] = []  # the warps
        self._lines: list[str] = []
        self._loop: list[str] = []
        self._counted: list[str] = []
        self._sizes: dict[int, int] = {}
        self._written: set[int] = set()
        self._versions: dict[int, int] = {}
        self._masks: dict[tuple[int, int, int], str] = {}
        self._lies: dict[tuple[int, int, int, int], tuple[str, str]] = {}
        self._sites: dict[int, tuple[str, str]] = {}
        self._names = 0
        self._groups = _group_loads(piece)
        self._ahead: dict[int, tuple[str, str]] = {}

    def write(self) -> str:
        """The function."""
        piece = self._piece
        for number, operation in enumerate(piece.operations, piece.first):
            if operation["code"] < PYTHON:
                self._compute(operation)
            else:
                self._close_loop()
                {LOAD: self._load, STORE: self._store, DIVIDE: self._divide}[operation["code"]](number, operation)
        self._close_loop()
        arrays = [f"LANES_OF(uint8_t) v{place}[{size * LANES}];" for place, size in sorted(self._sizes.items())]
        kept = [
            f"keep(frame + {place}, v{place}, {self._sizes[place]}, written);"
            for place in sorted(self._written & piece.needed)
        ]
        apart = [f"if (!are_apart(machine, {one}, {other})) return FAILED;" for one, other in piece.apart]
        return "\n".join(
            (
                f"EXPORT int64_t {name_piece(piece)}(Machine *machine, int64_t from)",
                "{",
                *apart,
                "const uint8_t *constants = machine->constants; (void)constants;",
                *self._before,
                "for (int64_t warp = from; warp < machine->warps; ++warp) {",
                "const uint32_t lanes = machine->current[warp], exists = machine->exists[warp];",
                "if (lanes == 0) continue;",
                "const uint32_t written = find_written(lanes, exists); (void)written;",
                "uint8_t *const frame = machine->frames + warp * machine->frame_bytes; (void)frame;",
                *arrays,
                *self._lines,
                *self._counted,
                *kept,
                "}",
                "return machine->warps;",
                "}",
            )
        )

    def _name(self, kind: str) -> str:
        self._names += 1
        return f"{kind}_{self._names}"

    def _find(self, place: int) -> str:
        """Where the values of an operand are."""
        if place < 0:
            return f"constants + {~place}"
        return f"v{place}" if place in self._written else f"frame + {place}"

    def _begin(self, place: int, size: int, *, is_whole: bool) -> str:
        """Where a result goes; some lanes of it may stay as they are."""
        if not is_whole and place not in self._written:
            self._lines.append(f"memcpy(v{place}, frame + {place}, {size * LANES});")
        self._sizes[place] = max(size, self._sizes.get(place, 0))
        return f"v{place}"

    def _end(self, *places: int) -> None:
        for place in places:
            if place >= 0:
                self._written.add(place)
                self._versions[place] = self._versions.get(place, 0) + 1

    def _close_loop(self) -> None:
        if self._loop:
            self._lines += ['_Pragma("GCC ivdep")', "for (int l = 0; l < LANES; ++l) {", *self._loop, "}"]
            self._loop = []

    def _find_mask(self, operation: Operation) -> str:
        """The lanes whose guard holds."""
        guard = operation["guard"]
        if guard < 0:
            return "lanes"
        key = guard, self._versions.get(guard, 0), operation["is_negated"]
        found = self._masks.get(key)
        if found is None:
            self._close_loop()
            found = self._masks[key] = self._name("mask")
            negation = "~" if operation["is_negated"] else ""
            self._lines.append(f"const uint32_t {found} = lanes & {negation}pack({self._find(guard)});")
        return found

    def _count(self, operation: Operation, mask: str) -> None:
        if operation["guard"] >= 0 and operation["counts"]:
            self._counted.append(f"machine->guarded[{operation['instruction']}] += __builtin_popcount({mask});")

    def _compute(self, operation: Operation) -> None:
        is_alone = operation["name"].startswith(_ALONE)
        if is_alone or len(self._loop) >= _MOST_IN_A_LOOP:
            self._close_loop()
        mask = self._find_mask(operation)
        self._count(operation, mask)
        chosen = ""
        if operation["guard"] >= 0:
            self._close_loop()
            chosen = self._name("chosen")
            self._lines.append(f"const uint32_t {chosen} = find_written({mask}, exists);")
        if operation["combination"] >= 0:
            self._compare(operation, chosen)
        elif operation["result"] >= 0:
            self._compute_one(operation, chosen)
        self._end(operation["result"], operation["other_result"])
        if is_alone:
            self._close_loop()

    def _call(self, operation: Operation, out: str) -> str:
        operands = ", ".join(self._find(operation[name]) for name in "abc")
        return f"lane_{operation['name']}({out}, {operands}, l, {_write_integer(operation['literal'])});"

    def _compute_one(self, operation: Operation, chosen: str) -> None:
        result, size = operation["result"], operation["result_bytes"]
        call = self._call(operation, "{}")
        out = self._begin(result, size, is_whole=not chosen)
        if not chosen:
            self._loop.append(call.format(out))
            return
        other = self._name("other")
        self._lines.append(f"LANES_OF(uint8_t) {other}[{size * LANES}];")
        kind = _TYPES[size]
        # What is not written yet has just been copied; results that were are read where they are.
        self._loop.append(call.format(other))
        self._loop.append(f"(({kind} *){out})[l] = {chosen} >> l & 1 ? (({kind} *){other})[l] : (({kind} *){out})[l];")

    def _compare(self, operation: Operation, chosen: str) -> None:
        """A comparison, combined with a predicate; and the opposite, combined with it, too."""
        places = operation["result"], operation["other_result"]
        held, form = self._name("held"), _COMBINED[operation["combination"]]
        self._lines.append(f"LANES_OF(uint8_t) {held}[{LANES}];")
        call, with_ = self._call(operation, held), self._find(operation["c"])
        outs = [self._begin(place, 1, is_whole=not chosen) if place >= 0 else "" for place in places]
        self._loop.append(call)
        parts = [f"const uint8_t is = {held}[l], with = ({with_})[l]; (void)with;"]
        for out, answer in zip(outs, ("is", "!is"), strict=True):
            if out:
                value = form.format(answer)
                parts.append(f"{out}[l] = {f'{chosen} >> l & 1 ? {value} : {out}[l]' if chosen else value};")
        self._loop.append("{ " + " ".join(parts) + " }")

    def _find_site(self, number: int, operation: Operation) -> tuple[str, str]:
        """What may be accessed, and what its addresses count from."""
        site, size = f"site_{number}", operation["elements"] * operation["element_bytes"]
        if number in self._sites:
            return self._sites[number]
        if operation["space"] == Space.SHARED:
            self._before.append(f"const Site {site} = find_shared(machine, {size});")
            memory = f"{site}.memory + machine->slots[warp] * machine->shared_stride"
        else:
            flags = f"{int(operation['code'] == LOAD)}, {int(operation['space'] == Space.GENERIC)}"
            self._before.append(f"const Site {site} = find_global(machine, {number}, {flags}, {size});")
            memory = f"{site}.memory"
        self._sites[number] = site, memory
        return site, memory

    def _find_lie(self, operation: Operation, mask: str) -> tuple[str, str]:
        """Addresses, without their offset, and how they lie."""
        place, size = operation["a"], operation["elements"] * operation["element_bytes"]
        key = place, self._versions.get(place, 0), size, operation["address_bytes"]
        if mask == "lanes" and key in self._lies:
            return self._lies[key]
        lie, address, lines = self._name("lie"), f"(const uint64_t *)({self._find(place)})", []
        if operation["address_bytes"] == 4:
            wide = self._name("wide")
            lines = [f"LANES_OF(uint64_t) {wide}[LANES]; widen({wide}, {self._find(place)});"]
            address = wide
        lines.append(f"const Lie {lie} = find_lie({address}, {size}, {mask});")
        if place < 0 and mask == "lanes":
            self._before += [one.replace("lanes", "UINT32_MAX") for one in lines]
        else:
            self._lines += lines
        if mask == "lanes":
            self._lies[key] = lie, address
        return lie, address

    def _open_access(self, number: int, operation: Operation) -> tuple[str, str, str, str]:
        """Lanes, where their addresses begin, addresses, and how they lie; what does not fit is left to the interpreter."""
        mask = self._find_mask(operation)
        self._count(operation, mask)
        site, memory = self._find_site(number, operation)
        if mask != "lanes":
            self._lines.append(f"if ({mask}) {{")
        lie, address = self._find_lie(operation, mask)
        offset = f"(uint64_t){_write_integer(operation['literal'])}"
        size = operation["elements"] * operation["element_bytes"]
        self._lines.append(f"if (__builtin_expect(!fits({lie}, {site}, {offset}, {size}), 0)) return warp;")
        if operation["space"] != Space.SHARED:
            marks = "MARK_READ" if operation["code"] == LOAD else "MARK_WRITTEN"
            self._lines.append(f"mark(machine, {address}, {lie}, {offset}, {size}, {mask}, {marks});")
        return mask, f"{memory} + {offset}", address, lie

    def _load(self, number: int, operation: Operation) -> None:
        width, size = operation["register_bytes"], operation["element_bytes"]
        places = list(operation["places"])[: operation["elements"]]
        for place in places:
            if place >= 0 and place not in self._written:
                condition = "" if operation["guard"] >= 0 else "if (lanes != UINT32_MAX) "
                self._lines.append(f"{condition}memcpy(v{place}, frame + {place}, {width * LANES});")
        mask, memory, address, lie = self._open_access(number, operation)
        if number in self._groups:
            self._load_ahead(self._groups[number], memory, address, lie)
        # A result may take the place of the addresses.
        is_moved = operation["a"] in places and len(places) > 1 and operation["a"] in self._written
        if is_moved:
            moved = self._name("moved")
            self._lines.append(f"LANES_OF(uint64_t) {moved}[LANES]; memcpy({moved}, {address}, sizeof {moved});")
            address = moved
        for element, place in enumerate(places):
            if place < 0:
                continue
            out = self._begin(place, width, is_whole=True)
            source = f"{memory} + {element * size}"
            if width != size:
                self._lines.append(
                    f"load_narrow({out}, {source}, {address}, {size}, {width}, {operation['is_signed']}, {mask});"
                )
            elif number in self._ahead:
                is_there, values = self._ahead.pop(number)
                self._lines.append(f"if ({is_there}) keep({out}, {values}, {size}, lanes);")
                self._lines.append(f"else load({out}, {source}, {address}, {lie}, {size}, {mask});")
            else:
                how = lie if len(places) == 1 else f"part({lie})"
                self._lines.append(f"load({out}, {source}, {address}, {how}, {size}, {mask});")
        if mask != "lanes":
            self._lines.append("}")
        self._end(*places)

    def _load_ahead(self, group: tuple[int, ...], memory: str, address: str, lie: str) -> None:
        """What a group of loads finds at scattered addresses, lane by lane: what lies together is in the cache together."""
        first = self._piece.operations[group[0] - self._piece.first]
        size, kind = first["element_bytes"], _TYPES[first["element_bytes"]]
        is_there = self._name("ahead")
        conditions, fetched = [f"{lie}.order == SCATTERED"], []
        for number in group:
            operation = self._piece.operations[number - self._piece.first]
            if number != group[0]:
                site, _ = self._find_site(number, operation)
                conditions.append(f"fits({lie}, {site}, (uint64_t){_write_integer(operation['literal'])}, {size})")
            values = f"{is_there}_{number}"
            self._lines.append(f"LANES_OF({kind}) {values}[LANES];")
            behind = operation["literal"] - first["literal"]
            fetched.append(f"memcpy({values} + l, from + {_write_integer(behind)}, {size});")
            self._ahead[number] = is_there, f"(const uint8_t *){values}"
        self._lines += [
            f"const int {is_there} = {' & '.join(conditions)};",
            f"if ({is_there}) FOR_LANES(l, lanes) {{",
            f"const uint8_t *from = {memory} + ({address})[l];",
            *fetched,
            "}",
        ]

    def _store(self, number: int, operation: Operation) -> None:
        width, size = operation["register_bytes"], operation["element_bytes"]
        places = list(operation["places"])[: operation["elements"]]
        mask, memory, address, lie = self._open_access(number, operation)
        for element, place in enumerate(places):
            target = f"{memory} + {element * size}"
            if place >= 0 and width != size:
                self._lines.append(f"store_narrow({target}, {self._find(place)}, {address}, {size}, {width}, {mask});")
            else:
                how = lie if len(places) == 1 else f"part({lie})"
                self._lines.append(f"store({target}, {self._find(place)}, {address}, {how}, {size}, {mask});")
        if mask != "lanes":
            self._lines.append("}")

    def _divide(self, _: int, operation: Operation) -> None:
        mask = self._find_mask(operation)
        self._count(operation, mask)
        size, place = operation["element_bytes"], operation["result"]
        sign = "s" if operation["is_signed"] else "u"
        sources = f"{self._find(operation['a'])}, {self._find(operation['b'])}"
        if place not in self._written:
            self._lines.append(f"memcpy(v{place}, frame + {place}, {size * LANES});")
        out = self._begin(place, size, is_whole=True)
        call = f"divide_{sign}{8 * size}({out}, {sources}, {int(operation['literal'] != 0)}, {mask})"
        self._lines.append(f"if (!{call}) return warp;")
        self._end(*list_written(operation))


def _group_loads(piece: Piece) -> dict[int, tuple[int, ...]]:
    """Loads of one value, at one register's address and some bytes behind it: first of each group → all of it, by number."""
    versions: dict[int, int] = {}
    groups: dict[tuple[int, ...], list[int]] = {}
    for number, operation in enumerate(piece.operations, piece.first):
        if operation["code"] == LOAD:
            place, size = operation["a"], operation["element_bytes"]
            is_plain = operation["elements"] == 1 and operation["register_bytes"] == size and operation["guard"] < 0
            if is_plain and place >= 0 and min(operation["places"][0], operation["literal"]) >= 0:
                key = place, versions.get(place, 0), size, operation["space"], operation["address_bytes"]
                found = groups.setdefault(key, [])
                first = found[0] if found else number
                behind = operation["literal"] - piece.operations[first - piece.first]["literal"]
                if 0 <= behind < _LINE_BYTES:
                    found.append(number)
        for place in list_written(operation):
            versions[place] = versions.get(place, 0) + 1
    return {group[0]: tuple(group) for group in groups.values() if len(group) > 1}


def _write_integer(value: int) -> str:
    return f"INT64_C({value})" if value > -(1 << 63) else "INT64_MIN"


_LOG = logging.getLogger(__name__)

# A kernel is translated when the interpreter has executed so much of it: about as long as a C compiler takes
HOT_WARP_INSTRUCTIONS = 1 << 25
_OPERATIONS_A_SECOND = 64  # That a C compiler does; kernels of more must have been executed for longer
_MOST_OPERATIONS = 2000  # Kernels of more are left to the interpreter: to compile them takes a minute
_MOST_TRANSLATIONS = 64
_MOST_LIBRARIES = 1024  # Of a process: they stay loaded, for whoever executes them


class PieceTable(ColumnRecord, frozen=True, kw_only=True):
    """Pieces, for the core."""

    functions: npt.NDArray[np.uint64]  # uint64 by operation, the address of the piece that begins with it; 0 for none
    ends: npt.NDArray[np.int64]  # int64 by operation, the first one behind that piece
    library: ctypes.CDLL  # that has them


class Translation:
    """One kernel's way into C. Launches of the same kernel share it, from whichever thread.

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
        """Note what was executed; what is executed for long is translated, beside it."""
        with self._lock:
            self._executed += warp_instructions
            enough = HOT_WARP_INSTRUCTIONS * max(1, len(kernel.operations) // _OPERATIONS_A_SECOND)
            if self._thread is None and is_seen and self._executed >= enough:
                pieces = self._find_pieces(kernel)
                self._thread = threading.Thread(target=self._make, args=(pieces, len(kernel.operations)), daemon=True)
                self._thread.start()

    def wait(self) -> None:
        """Until it is there, where it was begun."""
        if self._thread is not None:
            self._thread.join()

    def _find_pieces(self, kernel: CompiledKernel) -> list[Piece]:
        if len(kernel.operations) > _MOST_OPERATIONS:
            return []
        codes = list_codes(kernel.core)
        return find_pieces(kernel, list(codes), checks_shared=self._checks_shared)

    def _make(self, pieces: list[Piece], operations: int) -> None:
        if not pieces:
            return
        try:
            library = open_source(translate(pieces), needed_for="kernels that run for long")
        except (GpaError, OSError) as error:
            _LOG.info("a kernel stays with the interpreter: %s", error)
            return
        functions, ends = np.zeros(operations, np.uint64), np.zeros(operations, np.int64)
        for piece in pieces:
            functions[piece.first] = ctypes.cast(getattr(library, name_piece(piece)), ctypes.c_void_p).value or 0
            ends[piece.first] = piece.end
        self.table = PieceTable(functions=functions, ends=ends, library=library)


class Translations:
    """Those of this process, by what they are of."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[bytes, Translation] = {}
        self._loaded = 0

    def find(self, kernel: CompiledKernel, *, checks_shared: bool) -> Translation | None:
        """The one of a kernel; None where it stays with the interpreter."""
        if not may_translate():
            return None
        operations = kernel.operations.copy()
        operations["region"] = operations["is_known"] = 0
        digest = hashlib.sha256(operations.tobytes() + kernel.table.tobytes())
        digest.update(f"{kernel.frames.frame_bytes} {checks_shared} {list_read_by_python(kernel)}".encode())
        with self._lock:
            if len(self._known) >= _MOST_TRANSLATIONS:
                self._loaded += sum(one.table is not None for one in self._known.values())
                self._known.clear()
            if self._loaded >= _MOST_LIBRARIES:
                return None
            return self._known.setdefault(digest.digest(), Translation(checks_shared=checks_shared))

    def wait(self) -> int:
        """Until all that were begun are there; how many are."""
        with self._lock:
            known = list(self._known.values())
        for one in known:
            one.wait()
        return sum(one.table is not None for one in known)


TRANSLATIONS = Translations()  # Translations of kernels, which others of the same operations share
