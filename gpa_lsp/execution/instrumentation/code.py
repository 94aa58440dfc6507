"""PTX that records: the prologue of a function (:func:`write_prologue`), and code before an instruction (:class:`RecordWriter`).

Nothing here jumps: a basic block stays one, and lanes that were together stay together. Source: PTX ISA 9.0; warp-aggregated atomics as in the
CUDA C++ Programming Guide, ``__activemask``.
"""

from collections.abc import Sequence
from enum import IntEnum

from msgspec import Struct

from gpa_lsp.code.ptx.model import Address, Immediate, Operand, PtxFunction, PtxInstruction, Register, Space, Symbol
from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.code.ptx.static_instructions import StaticInstruction
from gpa_lsp.foundation.records import ColumnRecord

_BITS = "%gpa_b"
_WIDE = "%gpa_d"
_PREDICATE = "%gpa_p"
BEFORE = f"{_BITS}0"  # Lanes before this one
BLOCK, WARP, WAY = f"{_BITS}1", f"{_BITS}2", f"{_BITS}3"
_SCRATCH = tuple(f"{_BITS}{number}" for number in range(4, 12))
ROWS_REGISTER, CAPACITY, WAY_PLACE = f"{_WIDE}0", f"{_WIDE}1", f"{_WIDE}2"
_WORDS = tuple(f"{_WIDE}{number}" for number in range(3, 9))
_LANE_WORDS = (f"{_WIDE}9", f"{_WIDE}10")
TRACED = f"{_PREDICATE}0"
_RECORDS, _LEADS, _FITS, _DROPS, _TESTED = (f"{_PREDICATE}{number}" for number in range(1, 6))
_ALL_ROWS = (1 << 32) - 1
_NO_INDEX = 1 << 32
_NARROW_BYTES = 4

# Variables of the module: words of :class:`StateWord`; the records; which blocks are traced; each thread's way of calls; where each call leads from
# each way; addresses of variables
VARIABLES = tuple(f"gpa_lsp_{name}" for name in ("state", "rows", "blocks", "paths", "calls", "places"))
STATE, ROWS, BLOCKS, PATHS, CALLS, PLACES = VARIABLES


class StateWord(IntEnum):
    """Words of :data:`STATE`."""

    ROWS = 0  # Address of the records
    CAPACITY = 1  # Words there is room for
    NEXT = 2  # Words that were reserved, also those there was no room for
    DROPPED = 3  # Records there was no room for
    BLOCKS = 4  # Address of a bit for each block: whether it is traced
    BLOCK_MASK = 5  # Bits of a block's number by which its bit is found
    PATHS = 6  # Address of each thread's way of calls


def _state(word: StateWord) -> str:
    return f"[{STATE}+{WORD_BYTES * word}]"


class Place(Struct, frozen=True, kw_only=True):
    """Variable whose address in its own space the kernel reports."""

    name: str  # of the variable
    space: Space  # SHARED, LOCAL or CONST
    offset_bytes: int  # where a trace has it in shared and local memory; 0 of a constant
    size_bytes: int  # of it; all that follows of a dynamic array


def write_prologue(*, has_calls: bool, places: Sequence[tuple[int, Place]], is_kernel: bool) -> list[str]:
    """Registers of a function, its block and warp, and whether they are traced."""
    a, b, c, threads = _SCRATCH[:4]
    lines = [
        f".reg .pred {_PREDICATE}<6>;",
        f".reg .b32 {_BITS}<12>;",
        f".reg .b64 {_WIDE}<11>;",
        f"mov.u32 {BEFORE}, %lanemask_lt;",
        *_write_linear(BLOCK, a, b, "%ctaid", "%nctaid"),
        *_write_linear(c, a, b, "%tid", "%ntid"),
        f"shr.u32 {WARP}, {c}, 5;",
        f"mov.u32 {WAY}, 0;",
        f"ld.global.u64 {ROWS_REGISTER}, {_state(StateWord.ROWS)};",
        f"ld.global.u64 {CAPACITY}, {_state(StateWord.CAPACITY)};",
        f"ld.global.u64 {_WORDS[0]}, {_state(StateWord.BLOCKS)};",
        f"ld.global.u32 {a}, {_state(StateWord.BLOCK_MASK)};",
        f"and.b32 {a}, {BLOCK}, {a};",
        f"shr.u32 {b}, {a}, 5;",
        f"mad.wide.u32 {_WORDS[0]}, {b}, 4, {_WORDS[0]};",
        f"ld.global.u32 {b}, [{_WORDS[0]}];",
        f"and.b32 {a}, {a}, 31;",
        f"shr.u32 {b}, {b}, {a};",
        f"and.b32 {b}, {b}, 1;",
        f"setp.ne.u32 {TRACED}, {b}, 0;",
    ]
    if has_calls:
        lines += [
            f"mov.u32 {a}, %ntid.x;",
            f"mov.u32 {b}, %ntid.y;",
            f"mul.lo.u32 {threads}, {a}, {b};",
            f"mov.u32 {b}, %ntid.z;",
            f"mul.lo.u32 {threads}, {threads}, {b};",
            f"mul.wide.u32 {WAY_PLACE}, {BLOCK}, {threads};",
            f"cvt.u64.u32 {_WORDS[0]}, {c};",
            f"add.u64 {WAY_PLACE}, {WAY_PLACE}, {_WORDS[0]};",
            f"shl.b64 {WAY_PLACE}, {WAY_PLACE}, 2;",
            f"ld.global.u64 {_WORDS[0]}, {_state(StateWord.PATHS)};",
            f"add.u64 {WAY_PLACE}, {WAY_PLACE}, {_WORDS[0]};",
        ]
    if places and is_kernel:
        lines += [f"or.b32 {c}, {c}, {BLOCK};", f"setp.eq.u32 {_LEADS}, {c}, 0;"]
    guard = f"@{_LEADS} " if is_kernel else ""
    for number, place in places:
        lines += [
            f"mov.u64 {_WORDS[0]}, {place.name};",
            f"{guard}st.global.u64 [{PLACES}+{WORD_BYTES * number}], {_WORDS[0]};",
        ]
    return lines


# Start of a called function: reads the way of calls that led to it
READ_WAY = f"ld.global.u32 {WAY}, [{WAY_PLACE}];"


def write_call(number: int, count: int, guard: str) -> list[str]:
    """Code before a call: stores the way it leads to."""
    a = _SCRATCH[0]
    return [
        f"mad.lo.u32 {a}, {WAY}, {count}, {number};",
        f"mov.u64 {_WORDS[0]}, {CALLS};",
        f"mad.wide.u32 {_WORDS[0]}, {a}, 4, {_WORDS[0]};",
        f"ld.global.u32 {a}, [{_WORDS[0]}];",
        f"{guard}st.global.u32 [{WAY_PLACE}], {a};",
    ]


def _write_linear(into: str, a: str, b: str, place: str, extent: str) -> list[str]:
    """Linear index of a place of three axes, x fastest."""
    return [
        f"mov.u32 {into}, {place}.z;",
        f"mov.u32 {a}, {extent}.y;",
        f"mov.u32 {b}, {place}.y;",
        f"mad.lo.u32 {into}, {into}, {a}, {b};",
        f"mov.u32 {a}, {extent}.x;",
        f"mov.u32 {b}, {place}.x;",
        f"mad.lo.u32 {into}, {into}, {a}, {b};",
    ]


class SiteKind(IntEnum):
    """Kind of a record."""

    ACCESS = 0  # A lane's address
    MATRIX = 1  # Address and stride that a lane of ``wmma.load`` or ``wmma.store`` gives
    BRANCH = 2
    TABLE = 3  # The index of a ``brx.idx``; 2^32 where its guard is false
    ENTRY = 4


class Site(Struct, frozen=True, kw_only=True):
    """A recorded instruction or block entry."""

    kind: SiteKind  # what
    static: int  # number of the static instruction; of an entry the number of the basic block
    instruction: PtxInstruction | None = None  # that is recorded; None for entries
    space: Space = Space.GENERIC  # of an access; GENERIC where each address says it, see :data:`SPACE_SHIFT`
    size_bytes: int = 0  # of an access, per lane
    lanes: int = 32  # of an access: those from the first one on whose addresses count (``ldmatrix``)


class RecordWriter(Struct, frozen=True):
    """Writes the code that records a site of a function."""

    function: PtxFunction  # it stands in

    def write(self, number: int, site: Site) -> list[str]:
        """Code before the instruction of a site."""
        kind = site.kind
        if kind is SiteKind.ENTRY:
            return _write_record(number, LANE_WORDS[kind])
        assert site.instruction is not None
        guard = site.instruction.guard
        if kind is SiteKind.BRANCH:
            assert guard is not None
            return _write_record(number, LANE_WORDS[kind], jumped=self._name_guard(guard))
        if kind is SiteKind.TABLE:
            return [*self._write_index(site.instruction.sources[0], guard), *_write_record(number, LANE_WORDS[kind])]
        condition = self._write_condition(site, guard)
        address = site.instruction.sources[1 if site.instruction.opcode == "cp" else 0]
        lines = [*condition, *self._write_address(address, site.space)]
        if kind is SiteKind.MATRIX:
            lines += self._write_stride(site)
        return [*lines, *_write_record(number, LANE_WORDS[kind], is_conditional=bool(condition))]

    def _name(self, slot: int) -> str:
        return self.function.register_names[slot]

    def _name_guard(self, guard: Register) -> str:
        return f"{'!' if guard.is_negated else ''}{self._name(guard.slot)}"

    def _write_condition(self, site: Site, guard: Register | None) -> list[str]:
        """Restricts recording to the lanes that access memory, if not all active ones do."""
        lines = []
        if guard is not None:
            lines = [_and_traced(self._name(guard.slot), is_negated=guard.is_negated)]
        limit = self._find_limit(site)
        if isinstance(limit, Immediate):
            return lines if limit.value else [f"setp.ne.u32 {_RECORDS}, 0, 0;"]
        if limit is None:
            return lines
        name, so_far = self._name(limit.slot), _RECORDS if lines else TRACED
        if self.function.registers[limit.slot] is ScalarType.PRED:  # it says to copy nothing
            tested = [f"selp.u32 {_SCRATCH[0]}, 0, 1, {name};"]
            return [*lines, *tested, f"setp.ne.and.u32 {_RECORDS}, {_SCRATCH[0]}, 0, {so_far};"]
        return [*lines, f"setp.ne.and.u32 {_RECORDS}, {name}, 0, {so_far};"]

    def _find_limit(self, site: Site) -> Register | Immediate | None:
        """Bytes that an asynchronous copy reads, or a predicate to copy none; None for other instructions."""
        instruction = site.instruction
        if instruction is None or instruction.opcode != "cp" or "cache_hint" in instruction.suffixes:
            return None
        found = instruction.sources[3] if len(instruction.sources) > 3 else None
        return found if isinstance(found, Register | Immediate) else None

    def _write_address(self, operand: Operand, space: Space) -> list[str]:
        """Address of each lane; a generic one with its space."""
        assert isinstance(operand, Address)
        word, base, offset = _LANE_WORDS[0], operand.base, operand.offset_bytes
        if base is None:
            lines = [f"mov.u64 {word}, {offset};"]
        elif isinstance(base, Symbol):
            lines = [f"mov.u64 {word}, {base.name.partition('#')[0]};"]
            added = base.offset_bytes + offset
            lines += [f"add.s64 {word}, {word}, {added};"] if added else []
        elif self.function.registers[base.slot].bytes == _NARROW_BYTES:
            lines = [
                f"add.s32 {_SCRATCH[0]}, {self._name(base.slot)}, {offset};",
                f"cvt.u64.u32 {word}, {_SCRATCH[0]};",
            ]
        else:
            lines = [f"add.s64 {word}, {self._name(base.slot)}, {offset};"]
        return lines if space is not Space.GENERIC or not isinstance(base, Register) else [*lines, *_write_spaces(word)]

    def _write_stride(self, site: Site) -> list[str]:
        instruction = site.instruction
        assert instruction is not None
        others = instruction.sources[2 if "store" in instruction.suffixes else 1 :]
        word = _LANE_WORDS[1]
        if not others:
            return [f"mov.u64 {word}, 0;"]
        stride = others[0]
        if isinstance(stride, Immediate):
            return [f"mov.u64 {word}, {int(stride.value)};"]
        assert isinstance(stride, Register)
        return [f"cvt.u64.u32 {word}, {self._name(stride.slot)};"]

    def _write_index(self, index: Operand, guard: Register | None) -> list[str]:
        assert isinstance(index, Register)
        word = _LANE_WORDS[0]
        lines = [f"cvt.u64.u32 {word}, {self._name(index.slot)};"]
        if guard is not None:
            first, second = (_NO_INDEX, word) if guard.is_negated else (word, _NO_INDEX)
            lines.append(f"selp.b64 {word}, {first}, {second}, {self._name(guard.slot)};")
        return lines


def _and_traced(predicate: str, *, is_negated: bool) -> str:
    # Of two predicates one may be negated only where it is compared.
    return f"selp.u32 {_SCRATCH[0]}, {'0, 1' if is_negated else '1, 0'}, {predicate}; setp.ne.and.u32 {_RECORDS}, {_SCRATCH[0]}, 0, {TRACED};"


def _write_spaces(word: str) -> list[str]:
    """Put the space of a generic address into its highest bits, and convert it to that space."""
    inner = _WORDS[0]
    lines = []
    for name, space in (("shared", Space.SHARED), ("local", Space.LOCAL)):
        lines += [
            f"isspacep.{name} {_TESTED}, {word};",
            f"cvta.to.{name}.u64 {inner}, {word};",
            f"or.b64 {inner}, {inner}, {int(space) << SPACE_SHIFT};",
            f"selp.b64 {word}, {inner}, {word}, {_TESTED};",
        ]
    return lines


def _write_record(number: int, lane_words: int, *, is_conditional: bool = False, jumped: str = "") -> list[str]:
    """Reserve room for a record, and write it."""
    here, mask, rank, leader, words, place, aside = _SCRATCH[1:8]
    size, start, end, head = _WORDS[:4]
    records = _RECORDS if is_conditional else TRACED
    lines = [
        f"activemask.b32 {here};",
        f"vote.sync.ballot.b32 {mask}, {records}, {here};" if is_conditional else f"mov.u32 {mask}, {here};",
        f"and.b32 {rank}, {mask}, {BEFORE};",
        f"popc.b32 {rank}, {rank};",
        f"setp.eq.and.u32 {_LEADS}, {rank}, 0, {records};",
        f"brev.b32 {leader}, {mask};",
        f"clz.b32 {leader}, {leader};",
        f"popc.b32 {words}, {mask};",
        f"mad.lo.u32 {words}, {words}, {lane_words}, {HEAD_WORDS};",
        f"cvt.u64.u32 {size}, {words};",
        f"mov.u64 {start}, 0;",
        f"@{_LEADS} atom.global.add.u64 {start}, {_state(StateWord.NEXT)}, {size};",
        f"min.u64 {start}, {start}, {_ALL_ROWS};",
        f"cvt.u32.u64 {place}, {start};",
        f"shfl.sync.idx.b32 {place}, {place}, {leader}, 31, {here};",
        f"cvt.u64.u32 {start}, {place};",
        f"add.u64 {end}, {start}, {size};",
        f"setp.le.and.u64 {_FITS}, {end}, {CAPACITY}, {records};",
        f"setp.gt.and.u64 {_DROPS}, {end}, {CAPACITY}, {_LEADS};",
        f"@{_DROPS} red.global.add.u64 {_state(StateWord.DROPPED)}, 1;",
        f"setp.le.and.u64 {_LEADS}, {end}, {CAPACITY}, {_LEADS};",
        f"shl.b64 {start}, {start}, 3;",
        f"add.u64 {start}, {start}, {ROWS_REGISTER};",
        f"mov.u32 {aside}, 0;" if not jumped else f"vote.sync.ballot.b32 {aside}, {jumped}, {here};",
        f"mov.u32 {words}, {number};",
        f"mov.b64 {head}, {{{words}, {BLOCK}}};",
        f"@{_LEADS} st.global.u64 [{start}], {head};",
        f"mov.b64 {head}, {{{WAY}, {aside}}};",
        f"@{_LEADS} st.global.u64 [{start}+16], {head};",
        f"mov.b64 {head}, {{{mask}, {WARP}}};",
        f"@{_LEADS} st.global.u64 [{start}+8], {head};",
    ]
    if lane_words:
        lines.append(f"mad.wide.u32 {end}, {rank}, {WORD_BYTES * lane_words}, {start};")
    for word in range(lane_words):
        offset = WORD_BYTES * (HEAD_WORDS + word)
        lines.append(f"@{_FITS} st.global.u64 [{end}+{offset}], {_LANE_WORDS[word]};")
    return lines


# What instrumented PTX writes, and where: :class:`InstrumentedKernel` of :class:`Site`.
#
# A record is some words of 64 bits, written by the lanes that come to a site together: three of a head, by the first
# of them, then some of each lane.
#
# * word 0: number of the site, number of the block (32 bits each, the first one in the lower half, as in all of them);
# * word 1: lanes that are recorded, number of the warp in its block; never 0, so that what was reserved and not
#   written shows;
# * word 2: number of the way of calls, and for a branch the lanes that jumped;
# * then, by ascending lane, what is recorded of each.

HEAD_WORDS = 3
WORD_BYTES = 8
MOST_WORDS = (1 << 32) - 2  # Of all records: their places are passed from lane to lane as 32 bits

NO_PLACE = (1 << 64) - 1  # The address of a variable that no thread told

STATE_WORDS = len(StateWord)
# Where a recorded generic address holds its :class:`~gpa_lsp.code.ptx.model.Space`; addresses of GPUs have fewer bits
SPACE_SHIFT = 60

# Words of each lane
LANE_WORDS = {SiteKind.ACCESS: 1, SiteKind.MATRIX: 2, SiteKind.BRANCH: 0, SiteKind.TABLE: 1, SiteKind.ENTRY: 0}


class InstrumentedKernel(ColumnRecord, frozen=True, kw_only=True):
    """PTX that records itself, and the tables to decode its records."""

    kernel: str  # mangled name
    text: str  # the whole module
    sites: tuple[Site, ...]  # by number
    instructions: tuple[StaticInstruction, ...]  # the static instructions, as an emulation numbers them
    # by number, the calls that lead to a function, innermost first; the first is that of the kernel itself. None for ways that are not told apart.
    paths: tuple[tuple[int, ...] | None, ...]
    places: tuple[Place, ...]  # in the order of :data:`PLACES`
    has_calls: bool  # threads keep their way of calls in :data:`PATHS`
    unrecorded: tuple[str, ...] = ()  # instructions that access memory and are not recorded, each once
