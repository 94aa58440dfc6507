"""Operations of a kernel that take time, by the paper's Section III-A1 and Table I: :func:`list_operations`; their costs: :func:`find_costs`.

The paper reads LLVM's intermediate representation; here it is PTX. What the paper leaves out as bookkeeping of that representation is left out here
as well: moves, conversions, comparisons, selections, logic, reads of parameters, and the counterpart of ``getelementptr``: 64-bit integer arithmetic
whose result is used for addresses alone.
"""

import re
from collections.abc import Iterable, Mapping
from enum import Enum
from itertools import pairwise

from msgspec import Struct

from gpa_lsp.code.ptx.model import Address, Immediate, PtxFunction, PtxInstruction, Symbol, list_reads, list_writes
from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.code.ptx.static_instructions import count_bytes_per_lane
from gpa_lsp.code.symbolic_accesses.requests import SECTOR_BYTES
from gpa_lsp.foundation.errors import InputError
from gpa_lsp.gpu.arch.model import Architecture
from gpa_lsp.gpu.arch.sections import Figure, Unknown
from gpa_lsp.gpu.device.model import Machine, MemoryFacts, MemoryLevel


class Arithmetic(Enum):
    """Classes of Table I, as PTX has them."""

    INT_ADD = "integer addition"
    INT_MULTIPLY = "integer multiplication"
    INT_DIVIDE = "integer division"
    LONG_DIVIDE = "integer division of 64 bits"
    SHIFT = "shift"
    HALF = "half precision"
    SINGLE = "single precision"
    SINGLE_DIVIDE = "single-precision division or root"
    DOUBLE = "double precision"
    DOUBLE_DIVIDE = "double-precision division or root"
    SPECIAL = "special function"
    MATRIX_F16 = (
        "product of matrices of halves"  # Not in Table I, as those below; of 16 x 8 x 16, the unit of other shapes
    )
    MATRIX_F32 = "product of matrices of halves, summed in single precision"
    MATRIX_TF32 = "product of matrices of single precision"
    MATRIX_INT8 = "product of matrices of bytes"
    LOGIC = "comparison, selection or logic"  # Not in Table I


class Resource(Enum):
    """Resource that warps contend for (Section IV-B, Figure 2)."""

    ARITHMETIC = "arithmetic"
    CONSTANT = "constant memory"
    SHARED = "shared memory"
    GLOBAL = "global memory"
    L1 = "the cache in front of it"  # On GPUs whose loads go through one
    LOCAL = "private memory"  # The paper takes it for registers
    BARRIER = "barrier"
    REGISTER = "a register"  # Written by what the paper prunes


class Operation(Struct, frozen=True, kw_only=True):
    """An instruction that takes time."""

    instruction: int  # index of it
    resource: Resource  # what it needs
    arithmetic: Arithmetic | None = None  # class; None for accesses and barriers
    amount: float = 1.0  # number of operations of the class that cost as much
    address: Address | None = None  # of an access; None for others
    is_store: bool = False  # it returns nothing
    bytes: int = 0  # of a thread's access


class Part(Struct, frozen=True, kw_only=True):
    """An instruction of a basic block that takes time, or hands on registers of what does."""

    operation: Operation | None  # None for what the paper prunes
    reads: tuple[int, ...]  # registers
    writes: tuple[int, ...]  # the same
    # class of what the machine code executes for it though the paper prunes it; None for nothing
    pruned: Arithmetic | None = None


_INTEGER = {
    "add": Arithmetic.INT_ADD, "sub": Arithmetic.INT_ADD, "addc": Arithmetic.INT_ADD, "subc": Arithmetic.INT_ADD,
    "sad": Arithmetic.INT_ADD, "mul": Arithmetic.INT_MULTIPLY, "mad": Arithmetic.INT_MULTIPLY, "madc": Arithmetic.INT_MULTIPLY,
    "mul24": Arithmetic.INT_MULTIPLY, "mad24": Arithmetic.INT_MULTIPLY, "dp4a": Arithmetic.INT_MULTIPLY, "dp2a": Arithmetic.INT_MULTIPLY,
    "div": Arithmetic.INT_DIVIDE, "rem": Arithmetic.INT_DIVIDE, "shl": Arithmetic.SHIFT, "shr": Arithmetic.SHIFT, "shf": Arithmetic.SHIFT,
}  # fmt: skip
_LOGIC = frozenset(
    {
        "setp", "set", "selp", "slct", "min", "max", "and", "or", "xor", "not", "lop3", "cvt", "abs", "neg", "prmt", "bfe", "bfi",
    }
)  # fmt: skip
_FLOATING = frozenset({"add", "sub", "mul", "mad", "fma"})
_SLOW = frozenset({"div", "sqrt", "rcp", "rsqrt"})
_SPECIAL = frozenset({"sin", "cos", "ex2", "lg2", "tanh", "rcp", "rsqrt", "sqrt"})
_ACCESSES = frozenset({"ld", "ldu", "st", "atom", "red", "cp", "prefetch", "ldmatrix", "stmatrix"})
_REFUSED = {
    "call": "calls a function that was not inlined", "wmma": "multiplies matrices",
    "wgmma": "multiplies matrices", "tcgen05": "multiplies matrices", "tex": "reads a texture", "tld4": "reads a texture",
    "suld": "reads a surface", "sust": "writes a surface", "brx": "jumps by a table",
    "mbarrier": "waits at an mbarrier",
}  # fmt: skip
_FOLLOWED = frozenset({"call", "brx"})  # Where the kernel is executed with its data
_SHAPE = re.compile(r"m(\d+)n(\d+)k(\d+)")
MATRIX_PRODUCTS = 16 * 8 * 16
_PRODUCTS = {
    ScalarType.F16: Arithmetic.MATRIX_F16, ScalarType.BF16: Arithmetic.MATRIX_F32, ScalarType.TF32: Arithmetic.MATRIX_TF32,
    ScalarType.S8: Arithmetic.MATRIX_INT8, ScalarType.U8: Arithmetic.MATRIX_INT8,
}  # fmt: skip
# Calls that the paper leaves out, as those of its language's own functions
_BUILT_IN = frozenset({"vprintf", "__assertfail"})
_SPACES = {
    "global": Resource.GLOBAL, "shared": Resource.SHARED, "local": Resource.LOCAL, "const": Resource.CONSTANT,
}  # fmt: skip


def list_parts(
    instructions: Iterable[PtxInstruction], operations: Mapping[int, Operation], first_register: int = 0
) -> tuple[Part, ...]:
    """Parts of consecutive instructions, with the registers that they read and write.

    Args:
        first_register: added to the numbers of registers, which are those of one function.
    """
    found = []
    for one in instructions:
        reads, writes = (
            tuple(sorted({first_register + slot for slot in slots})) for slots in (list_reads(one), list_writes(one))
        )
        operation = operations.get(one.index)
        if one.opcode == "cp" and "async" in one.suffixes:
            found += _list_copy_parts(one, operation, reads)
        elif operation is not None or (reads and writes):
            pruned = Arithmetic.LOGIC if operation is None and one.opcode in _LOGIC else None
            found.append(Part(operation=operation, reads=reads, writes=writes, pruned=pruned))
    return tuple(found)


_MOST_PASSED = 64  # Instructions a load is moved past: about what the latency of shared memory takes to issue; assumed


# Registers in place of groups of asynchronous copies: those that are not in one yet, then the groups from the newest on
_COPIES = tuple(range(-1, -10, -1))


def _list_copy_parts(instruction: PtxInstruction, operation: Operation | None, reads: tuple[int, ...]) -> list[Part]:
    """Parts of an asynchronous copy, of the end of a group of them, or of a wait for groups."""
    if operation is not None:
        return [Part(operation=operation, reads=reads, writes=_COPIES[:1])]
    if "commit_group" in instruction.suffixes:
        return [
            Part(operation=None, reads=(newer,), writes=(older,)) for newer, older in reversed(tuple(pairwise(_COPIES)))
        ]
    left = next((one.value for one in instruction.sources if isinstance(one, Immediate)), 0)
    first = 0 if "wait_all" in instruction.suffixes else 1 + min(int(left), len(_COPIES) - 2)
    return [Part(operation=None, reads=_COPIES[first:], writes=(), pruned=Arithmetic.LOGIC)]


def find_lines(instructions: Iterable[PtxInstruction]) -> tuple[int, int] | None:
    """The first and the last line of the kernel's own source among some instructions; None where they have none."""
    lines = [one.chain[-1].line for one in instructions if one.chain]
    return (min(lines), max(lines)) if lines else None


def hoist_loads(parts: Iterable[Part]) -> tuple[Part, ...]:
    """Loads as early in their basic block as their operands and stores allow, where the assembler puts them."""
    found: list[Part] = []
    waiting: list[Part] = []
    for one in parts:
        is_free = one.operation is None or (one.operation.address is not None and not one.operation.is_store)
        if not is_free:
            waiting.append(one)
            if len(waiting) > _MOST_PASSED:
                found.append(waiting.pop(0))
            if one.operation is not None and one.operation.arithmetic is None:  # a store or a barrier
                found += waiting
                waiting = []
            continue
        first, needed = [], (set(one.reads), set(one.writes))
        for other in reversed(waiting):
            if needed[0] & set(other.writes) or needed[1] & {*other.reads, *other.writes}:
                first.append(other)
                needed[0].update(other.reads)
                needed[1].update(other.writes)
        if first:
            waiting = [other for other in waiting if other not in first]
        found += [*reversed(first), one]
    return (*found, *waiting)


class NeedsDataError(InputError):
    """A search finds no trace, but the data beside the launch may give one."""


def find_refusals(function: PtxFunction) -> dict[int, InputError]:
    """Instructions of a kernel for which the paper has no operation, by index, with the error of a trace that comes to them.

    Those whose control flow is known where they are executed have a :class:`NeedsDataError`.
    """
    found: dict[int, InputError] = {}
    for instruction in function.instructions:
        is_built_in = instruction.call is not None and instruction.call.callee in _BUILT_IN
        if instruction.opcode in _REFUSED and not is_built_in:
            lines = find_lines((instruction,))
            line = "" if lines is None else f" at line {lines[0]}"
            kind = NeedsDataError if instruction.opcode in _FOLLOWED else InputError
            message = f"it {_REFUSED[instruction.opcode]}{line}, for which the paper has no operation"
            found[instruction.index] = kind(message)
    return found


def list_operations(function: PtxFunction) -> dict[int, Operation]:
    """The operations of a kernel by the index of their instruction, but for those of :func:`find_refusals`."""
    pruned = _list_address_arithmetic(function)
    found: dict[int, Operation] = {}
    for instruction in function.instructions:
        if instruction.index not in pruned and instruction.opcode not in _REFUSED:
            operation = _classify(instruction)
            if operation is not None:
                found[instruction.index] = operation
    return found


def _classify(instruction: PtxInstruction) -> Operation | None:
    index, opcode = instruction.index, instruction.opcode
    if opcode in ("bar", "barrier"):
        if "warp" in instruction.suffixes:
            return None
        return Operation(instruction=index, resource=Resource.BARRIER)
    if opcode in _ACCESSES:
        return _classify_access(instruction)
    if opcode == "mma":
        return _classify_product(instruction)
    arithmetic = _classify_arithmetic(instruction)
    if arithmetic is None:
        return None
    return Operation(instruction=index, resource=Resource.ARITHMETIC, arithmetic=arithmetic)


def _classify_product(instruction: PtxInstruction) -> Operation:
    shape = next(filter(None, map(_SHAPE.fullmatch, instruction.suffixes)), None)
    result, factor = (*instruction.types, None, None)[:2]
    kind = _PRODUCTS.get(factor) if factor is not None else None
    if shape is None or kind is None:
        raise InputError(f"it multiplies matrices by {instruction.text[:60]}, for which there is no price")
    if kind is Arithmetic.MATRIX_F16 and result is not ScalarType.F16:
        kind = Arithmetic.MATRIX_F32
    m, n, k = (int(one) for one in shape.groups())
    return Operation(
        instruction=instruction.index, resource=Resource.ARITHMETIC, arithmetic=kind, amount=m * n * k / MATRIX_PRODUCTS
    )


def _classify_access(instruction: PtxInstruction) -> Operation | None:
    operand = next((one for one in (*instruction.sources, *instruction.destinations) if isinstance(one, Address)), None)
    if operand is None or "param" in instruction.suffixes:
        return None
    resource = next((_SPACES[one] for one in instruction.suffixes if one in _SPACES), Resource.GLOBAL)
    if instruction.opcode == "cp":  # an asynchronous copy: its source is waited for
        operand = next((one for one in instruction.sources if isinstance(one, Address)), operand)
        resource = Resource.GLOBAL
    return Operation(
        instruction=instruction.index,
        resource=resource,
        address=operand,
        is_store=instruction.opcode in ("st", "red"),
        bytes=count_bytes_per_lane(instruction),
    )


def _classify_arithmetic(instruction: PtxInstruction) -> Arithmetic | None:
    opcode = instruction.opcode
    kind = instruction.types[-1] if instruction.types else None
    if kind is None or kind is ScalarType.PRED:
        return None
    if not kind.is_float:
        found = _INTEGER.get(opcode)
        is_long = found is Arithmetic.INT_DIVIDE and kind.bytes > 4
        return Arithmetic.LONG_DIVIDE if is_long else found
    is_approximate = "approx" in instruction.suffixes
    if opcode in _SLOW and not is_approximate:
        return Arithmetic.DOUBLE_DIVIDE if kind is ScalarType.F64 else Arithmetic.SINGLE_DIVIDE
    if opcode in _SPECIAL or opcode in _SLOW:
        return Arithmetic.SPECIAL
    if opcode not in _FLOATING:
        return None
    if kind is ScalarType.F64:
        return Arithmetic.DOUBLE
    return Arithmetic.SINGLE if kind.bytes == 4 and kind in (ScalarType.F32, ScalarType.TF32) else Arithmetic.HALF


def _list_address_arithmetic(function: PtxFunction) -> set[int]:
    """Indexes of 64-bit integer arithmetic that addresses alone are made of."""
    followed: set[int] = set()
    writers: dict[int, list[PtxInstruction]] = {}
    used: list[int] = []
    for instruction in function.instructions:
        if _is_long_arithmetic(instruction) or instruction.opcode in ("mov", "cvta"):
            followed.add(instruction.index)
            for slot in list_writes(instruction):
                writers.setdefault(slot, []).append(instruction)
        else:
            used += set(list_reads(instruction)) - _list_bases(instruction)
    while used:  # a result that is used otherwise takes what it is made of with it
        for instruction in writers.pop(used.pop(), ()):
            if instruction.index in followed:
                followed.discard(instruction.index)
                used += list_reads(instruction)
    return {index for index in followed if function.instructions[index].opcode not in ("mov", "cvta")}


def _is_long_arithmetic(instruction: PtxInstruction) -> bool:
    kind = instruction.types[-1] if instruction.types else None
    if instruction.opcode not in _INTEGER or kind is None or kind.is_float:
        return False
    return kind.bytes == 8 or "wide" in instruction.suffixes


def _list_bases(instruction: PtxInstruction) -> set[int]:
    """Registers that an access uses as its address."""
    operands: Iterable[object] = (*instruction.sources, *instruction.destinations)
    return {
        one.base.slot
        for one in operands
        if isinstance(one, Address) and one.base is not None and not isinstance(one.base, Symbol)
    }


class Term(Enum):
    """Term that the paper's four GPUs, of one to three SMs, had no need of; without any, the model is the printed one."""

    # loads of global memory hit L1 first, which none of the four GPUs lets them do
    L1 = "L1"
    # behind L1 sectors are moved, no lines; L1 and shared memory take a cycle for each wavefront
    SECTORS = "sectors"
    # SMs without blocks leave their bandwidth to the others; what another SM has brought into L2 hits, and L2 keeps of what is stored what it can
    SHARED_L2 = "L2 of all SMs"
    # a warp waits for the operands of an operation, not for the end of the one before it
    OPERANDS = "operands"
    # a block begins where one has ended, not when all of its round have
    WAVES = "waves"
    # DRAM moves less than its peak, blocks are launched at a rate, and the launch takes time
    OVERHEAD = "overhead"


PRINTED: frozenset[Term] = frozenset()
EVERY_TERM = frozenset(Term)
PAPER_ERROR = 0.16  # Mean absolute error with every term, of the cycles of 30 launches of public reports


class ArithmeticCost(Struct, frozen=True, kw_only=True):
    """Cost of one class of arithmetic."""

    latency_cycles: float  # from one to the next that needs its result
    interval_cycles: float  # for which one holds the units of an SM


class MemoryCost(Struct, frozen=True, kw_only=True):
    """Cost of one memory."""

    hit_cycles: float  # the whole latency of an access that hits its cache
    miss_cycles: float  # of one that does not
    hit_delay_cycles: float  # for which one transaction holds the memory (the paper's delay)
    miss_delay_cycles: float  # the same, of one that misses


class Costs(Struct, frozen=True, kw_only=True):
    """Cost of each operation on a GPU: the paper's LAT (Section IV-A2, Table I), in cycles of the SM's clock.

    The paper takes them from micro-benchmarks with every number of active warps; here they come from the tables of the architecture. With w warps an
    operation holds the arithmetic units for its latency divided by w, and no shorter than they need for it: that is what such a benchmark measures.

    The paper scales the latency of memory by the ratio of the most warps to those there are, "since all the active warps share the memory bandwidth
    equally" (Section IV-A2). Taken by the letter a lone warp would wait 64 times as long as it does. What is shared is the bandwidth, and the lock on
    the memory shares it: so the delay is the time that the bytes of a transaction take at the SM's share of it, and latencies are not scaled.
    """

    terms: frozenset[Term]  # beside the printed model
    arithmetic: Mapping[Arithmetic, ArithmeticCost]  # of each class
    shared: MemoryCost  # of shared memory, which has no cache
    constant: MemoryCost  # of constant memory
    global_memory: MemoryCost  # of global memory behind L2
    l1_cycles: float  # the whole latency of a load that hits L1
    l1_bytes: int  # 0 where loads do not go through it (Section III-B3)
    tags_per_cycle: int | None  # lines L1 looks up while it hands over no data; None where it does both at once
    transaction_bytes: int  # a line, or a sector
    l2_bytes: int  # of L2
    constant_bytes: int  # of the bank of constants, which is taken to be cached whole


_SUB_PARTITIONS = 4
_L1_CYCLES, _L2_CYCLES, _DRAM_CYCLES, _SHARED_CYCLES = 33.0, 220.0, 530.0, 24.0  # Where a table has none
_SM_L2_BYTES_PER_CYCLE = 64.0
# Instructions of the usual path, and how many of them are special functions: counted in what ptxas 13.0 makes of one for sm_80
_INSTRUCTIONS: Mapping[Arithmetic, tuple[int, int]] = {
    Arithmetic.INT_DIVIDE: (18, 2), Arithmetic.LONG_DIVIDE: (70, 3), Arithmetic.SINGLE_DIVIDE: (9, 1),
    Arithmetic.DOUBLE_DIVIDE: (10, 1),
}  # fmt: skip
_DEPENDENT_CYCLES: Mapping[Arithmetic, float] = {
    Arithmetic.DOUBLE: 8.0,
    Arithmetic.DOUBLE_DIVIDE: 8.0,
    Arithmetic.SPECIAL: 18.0,
}
_SIMPLE_CYCLES = 4.0
_SPECIAL_CYCLES = 18.0
_MATRIX_CYCLES = 18.0
_SLOWEST = 1 / 64  # Instructions per cycle and sub-partition of a unit that hardly exists


def find_costs(
    architecture: Architecture,
    machine: Machine,
    memory: MemoryFacts,
    *,
    terms: frozenset[Term] = EVERY_TERM,
    active_sms: float | None = None,
    shared_bytes_per_sm: int = 0,
) -> Costs:
    """LAT of a GPU.

    Args:
        active_sms: SMs that have blocks; None for all.
        shared_bytes_per_sm: of all resident blocks.

    Raises:
        InputError: its clocks, bandwidth, SMs or the size of its L2 are not known.
    """
    dram, l2 = machine.find_bandwidth(MemoryLevel.DRAM), machine.find_bandwidth(MemoryLevel.L2)
    sm_hz, sm_count = machine.clocks.sm_hz, machine.sm_count
    if dram is None or dram.bytes_per_s is None or not sm_hz or not sm_count or not memory.l2_bytes:
        message = f"the clocks, the bandwidth or the L2 of the {machine.name} are not known"
        raise InputError(message, remedy="name a GPU with --machine")
    hierarchy, line = architecture.hierarchy, architecture.caches.line_bytes.value
    unit = SECTOR_BYTES if Term.SECTORS in terms else line
    sharing = (active_sms or sm_count) if Term.SHARED_L2 in terms else sm_count
    l2_rate = l2.bytes_per_s if l2 is not None and l2.bytes_per_s else 4 * dram.bytes_per_s
    dram_rate = dram.bytes_per_s * (memory.achieved_ratio if Term.OVERHEAD in terms else 1.0)
    l2_delay, dram_delay = (unit / min(_SM_L2_BYTES_PER_CYCLE, rate / sm_hz / sharing) for rate in (l2_rate, dram_rate))
    near, far = hierarchy.l2_near_cycles.value or _L2_CYCLES, hierarchy.dram_tlb_warm_cycles.value or _DRAM_CYCLES
    shared_cycles = hierarchy.shared_cycles.value or _SHARED_CYCLES
    accept = float(architecture.sm.memory_accept_interval_cycles.value)
    constant_hit = float(hierarchy.constant_l1_hit_cycles.value or shared_cycles)
    l1_bytes = memory.find_l1_bytes(architecture, shared_bytes_per_sm) if Term.L1 in terms else 0
    return Costs(
        terms=terms,
        arithmetic={one: _find_arithmetic(architecture, one) for one in Arithmetic},
        shared=MemoryCost(
            hit_cycles=shared_cycles, miss_cycles=shared_cycles, hit_delay_cycles=accept, miss_delay_cycles=accept
        ),
        constant=MemoryCost(
            hit_cycles=constant_hit, miss_cycles=far, hit_delay_cycles=accept, miss_delay_cycles=dram_delay
        ),
        global_memory=MemoryCost(
            hit_cycles=near, miss_cycles=far, hit_delay_cycles=l2_delay, miss_delay_cycles=dram_delay
        ),
        l1_cycles=hierarchy.l1_hit_cycles.value or _L1_CYCLES,
        l1_bytes=l1_bytes,
        tags_per_cycle=architecture.caches.l1_tags_per_cycle.value,
        transaction_bytes=unit,
        l2_bytes=int(memory.l2_bytes),
        constant_bytes=architecture.caches.constant_bank_bytes.value,
    )


def _find_arithmetic(architecture: Architecture, kind: Arithmetic) -> ArithmeticCost:
    rates = architecture.throughput
    single, special = rates.fp32_instructions_per_cycle, rates.mufu_instructions_per_cycle
    own: Mapping[Arithmetic, Figure[float] | Unknown] = {
        Arithmetic.INT_ADD: rates.int32_add_instructions_per_cycle,
        Arithmetic.INT_MULTIPLY: rates.imad_instructions_per_cycle,
        Arithmetic.INT_DIVIDE: rates.imad_instructions_per_cycle,
        Arithmetic.LONG_DIVIDE: rates.imad_instructions_per_cycle,
        Arithmetic.SHIFT: rates.int32_logic_instructions_per_cycle,
        Arithmetic.LOGIC: rates.int32_logic_instructions_per_cycle,
        Arithmetic.HALF: rates.fp16_instructions_per_cycle,
        Arithmetic.DOUBLE: rates.fp64_instructions_per_cycle,
        Arithmetic.DOUBLE_DIVIDE: rates.fp64_instructions_per_cycle,
        Arithmetic.SPECIAL: special,
    }
    products: Mapping[Arithmetic, Figure[float] | Unknown] = {
        Arithmetic.MATRIX_F16: rates.tensor_fp16_flops_per_cycle,
        Arithmetic.MATRIX_F32: rates.tensor_fp16_fp32_flops_per_cycle,
        Arithmetic.MATRIX_TF32: rates.tensor_tf32_flops_per_cycle,
        Arithmetic.MATRIX_INT8: rates.tensor_int8_ops_per_cycle,
    }
    if kind in products:
        interval = 2 * MATRIX_PRODUCTS / (products[kind].value or _SUB_PARTITIONS)
        return ArithmeticCost(latency_cycles=max(_MATRIX_CYCLES, _SUB_PARTITIONS * interval), interval_cycles=interval)
    rate = own.get(kind, single).value or _SLOWEST
    count, slow = _INSTRUCTIONS.get(kind, (1, 0))
    interval = (count - slow) / rate + slow / special.value
    latency = (count - slow) * _DEPENDENT_CYCLES.get(kind, _SIMPLE_CYCLES) + slow * _SPECIAL_CYCLES
    return ArithmeticCost(latency_cycles=latency, interval_cycles=interval / _SUB_PARTITIONS)
