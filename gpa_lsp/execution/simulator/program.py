"""The SASS of a kernel as the simulator reads it: :class:`SassProgram`, a column per fact, made by :func:`read_program`."""

import re
from collections.abc import Mapping, Sequence
from enum import IntEnum
from functools import lru_cache
from itertools import accumulate
from types import MappingProxyType

from msgspec import Struct

from gpa_lsp.code.binary.model import INSTRUCTION_BYTES
from gpa_lsp.code.binary.opcodes import Access, MemorySpace, Opcode, describe_mnemonic
from gpa_lsp.code.binary.sass import read_mnemonic, read_operands
from gpa_lsp.code.binary.uses import OperandKind, find_roles, parse_operand
from gpa_lsp.diagnosis.analyses.mix import find_pipe
from gpa_lsp.diagnosis.analyses.roofline.operations import count_tensor_operations
from gpa_lsp.execution.simulator.reasons import MIO_THROTTLE, TEX_THROTTLE
from gpa_lsp.gpu.arch.model import Architecture
from gpa_lsp.gpu.device.model import OperationKind
from gpa_lsp.gpu.device.rates import list_operation_rates
from gpa_lsp.kernel.model import KernelRows


class Kind(IntEnum):
    """Kind of an instruction, by its way through an SM."""

    FIXED = 0
    LOAD = 1  # From global or local memory
    STORE = 2
    SHARED = 3
    SPECIAL = 4  # Of variable latency, but no access of memory
    BARRIER = 5
    BRANCH = 6
    REDUCTION = 7
    MEMBAR = 8
    ASYNC_FENCE = 9  # Ends when the copies to shared memory before it have
    RETURN = 10  # Jumps to an address that a register holds
    CONVERGE = 11
    ATOMIC = 12  # In global memory, and returns something: goes as loads do, past L1


SUB_CORES = 4  # Of an SM
LSU, XU, ADU, FP64_UNIT = range(4)  # Units with queues of their own in front of them
UNITS = 4
PIPE_NAMES = ("none", "alu", "fma", "fmaheavy", "fp16", "fp64", "tensor", "uniform")
PIPES = len(PIPE_NAMES)  # Of a sub-core, without queues


class OpcodeCourse(Struct, frozen=True, kw_only=True):
    """Course of an opcode through an SM: its kind, unit, rate and latency."""

    kind: Kind = Kind.FIXED  # see :class:`Kind`
    pipe: int = 0  # of the sub-core; 0 where nothing is held
    # cycles for which it holds its pipe or unit; of L2, in which an atomic operation holds its address
    interval: float = 1.0
    latency: float = 4.0  # cycles until its result is there, at best
    unit: int = -1  # whose queue it goes through; -1 for none
    is_lg: bool = False  # the queue is that of global and local memory
    throttle: int = MIO_THROTTLE  # stall reason of a warp while the queue is full
    is_long: bool = False  # its scoreboard is L1TEX's
    uses_l1: bool = True  # what it loads is kept there
    is_shared_unit: bool = False  # all sub-cores have one unit together
    is_async: bool = False  # it copies to shared memory on its own
    defers: bool = False  # a barrier whose warps compute on until they come to any other instruction


class RegisterReads(Struct, frozen=True, kw_only=True):
    """The registers that an instruction reads, by the place of the operand."""

    first: tuple[int, int, int] = (-1, -1, -1)  # number of each operand's first register; -1 where it has none
    count: tuple[int, int, int] = (0, 0, 0)  # registers that follow each other
    kept: tuple[bool, bool, bool] = (False, False, False)  # whether they are to be kept


class SassProgram(Struct, frozen=True, kw_only=True):
    """The n rows of a kernel: columns of :class:`OpcodeCourse`, of the control codes and of the operands."""

    kind: list[Kind]
    pipe: list[int]
    interval: list[float]
    latency: list[float]
    unit: list[int]
    is_lg: list[bool]
    throttle: list[int]
    is_long: list[bool]
    uses_l1: list[bool]
    is_shared_unit: list[bool]
    is_async: list[bool]
    defers: list[bool]
    computes: list[bool]  # of fixed latency, and accesses no memory
    gate: list[int]  # rows with the same wait for the same pipe or queue
    stall: list[float]  # cycles until the warp's next instruction
    yields: list[bool]  # the scheduler goes on with another warp, where one is eligible
    write_board: list[int]  # scoreboard of the result; -1 for none
    read_board: list[int]  # scoreboard of the sources; -1 for none
    wait_mask: list[int]  # scoreboards that hold the warp
    depbar_board: list[int]  # scoreboard that holds the warp until ``depbar_left`` are outstanding; -1 for none
    depbar_left: list[int]  # see there; -1 for none
    has_depbar: bool  # some row has one
    fetch_line: list[int]  # of the instruction cache
    constant_line: list[int]  # of the constant cache that an operand is in; -1 for none
    # what an instruction of fixed latency reads; nothing for others, whose operands are read behind queues
    register_reads: list[RegisterReads]


_BEHIND_L1 = (MemorySpace.GLOBAL, MemorySpace.GENERIC, MemorySpace.LOCAL, MemorySpace.TEXTURE, MemorySpace.SURFACE)
_KINDS = {
    Access.LOAD: Kind.LOAD, Access.COPY: Kind.LOAD, Access.ATOMIC: Kind.ATOMIC, Access.STORE: Kind.STORE, Access.REDUCTION: Kind.REDUCTION,
}  # fmt: skip
_THROUGH_SHARED = frozenset({"SHFL", "MOVM"})  # Go the way of accesses of shared memory
_FENCES = frozenset({"LDGDEPBAR", "ARRIVES"})
_BRANCHES = frozenset({"BRA", "JMP", "CALL", "EXIT", "BREAK", "YIELD"})
_RETURNS = frozenset({"RET", "BRX", "BRXU", "JMX", "JMXU"})
_CONVERGENCES = frozenset({"BSYNC", "WARPSYNC"})
_ADU_CYCLES = {"LDC": 26.0, "LDCU": 26.0, "R2UR": 10.0}
_ADU = frozenset({"S2R", "S2UR", "B2R", "LDC", "LDCU", "R2UR", "MATCH", "REDUX", "CREDUX"})
_STRONG = frozenset({"STRONG", "GPU", "SYS", "SM"})
_OLD_MAJOR = 7

_WIDE_LOAD_CYCLES = {"64": 2.0, "128": 6.0, "ENL2": 6.0}
_WIDE_SHARED_CYCLES = {"128": 2.0}
_FENCE_CYCLES = 20.0
# Of L2, between operations at one address. Additions of floats: a GTX 1660 SUPER counted 1,048,576 in 3,146,718 cycles, and called that 33 % of the
# peak; integers are assumed to reach that peak, and both to be the same on other GPUs.
_ATOMIC_CYCLES, _FLOAT_ATOMIC_CYCLES = 1.0, 3.0
_ADU_INTERVAL = 2.0
_TENSOR_CYCLES = 4.0  # Of a product whose operations or rate are not known
# Of the peak, which instructions of warp groups reach. Source: counters of peaks in reports of 9.0 (rates.py)
_WARP_PRODUCT_RATIO = 2 / 3
# Where FP64 is slower, the SM has one unit, which conversions from and to doubles go through as well. An RTX 3070 counted 16 cycles of it for each
# DFMA, DSETP and I2F.F64 (sm__pipe_fp64_cycles_active); a V100 none for conversions.
_SLOW_FP64 = 0.1
_CONVERSIONS = ("I2F", "F2I", "F2F", "FRND")
_NO_BOARD = 6
_CODE_LINE_BYTES, _CONSTANT_LINE_BYTES = 128, 64
_CONSTANT_BANK_LINES = 1 << 12
_CONSTANT = re.compile(r"c\[0x([0-9a-f]+)\]\[(?:0x([0-9a-f]+))?")
_CALL_THROUGH = re.compile(r"CALL\S*\s+R\d")
_DEPBAR = re.compile(r"DEPBAR\S*\s+SB([0-5])(?:,\s*(0x[0-9a-f]+))?")


def read_program(
    rows: KernelRows, architecture: Architecture, peaks: Mapping[OperationKind, float] = MappingProxyType({})
) -> SassProgram:
    """Facts of a kernel's instructions that the simulator needs.

    Args:
        peaks: operations of one SM per cycle at most, by type, of the GPU; those of the architecture where they are missing.
    """
    known = {kind: rate.per_cycle for kind, rate in list_operation_rates(architecture).items()} | dict(peaks)
    courses = [_find_course(rows.mnemonic(row), rows.texts[row], architecture, known) for row in range(len(rows))]
    control = rows.control
    depbars = [_find_depbar(text) for text in rows.texts]

    def boards(column: list[int]) -> list[int]:
        return [number if number < _NO_BOARD else -1 for number in column]

    return SassProgram(
        **{name: [getattr(one, name) for one in courses] for name in OpcodeCourse.__struct_fields__},
        computes=[
            one.kind == Kind.FIXED and describe_mnemonic(rows.mnemonic(row)).access is None
            for row, one in enumerate(courses)
        ],
        gate=[2 * one.unit + one.is_lg if one.unit >= 0 else -1 - one.pipe for one in courses],
        stall=[max(1.0, float(cycles)) for cycles in control.stall_cycles.tolist()],
        yields=control.yield_flag.tolist(),
        write_board=boards(control.write_barrier.tolist()),
        read_board=boards(control.read_barrier.tolist()),
        wait_mask=control.wait_mask.tolist(),
        depbar_board=[board for board, _ in depbars],
        depbar_left=[left for _, left in depbars],
        has_depbar=any(board >= 0 for board, _ in depbars),
        fetch_line=_list_fetch_lines(rows),
        constant_line=[_find_constant(text) for text in rows.texts],
        register_reads=[
            find_register_reads(text, reuse) if one.kind == Kind.FIXED else NO_READS
            for one, text, reuse in zip(courses, rows.texts, control.reuse.tolist(), strict=True)
        ],
    )


def _list_fetch_lines(rows: KernelRows) -> list[int]:
    """Lines of code, functions apart."""
    sizes = [len(one.pc_offsets) * INSTRUCTION_BYTES // _CODE_LINE_BYTES + 1 for one in rows.functions]
    first = [0, *accumulate(sizes)]
    pairs = zip(rows.function_index.tolist(), rows.pc_offsets.tolist(), strict=True)
    return [first[function] + offset // _CODE_LINE_BYTES for function, offset in pairs]


def _find_depbar(text: str) -> tuple[int, int]:
    found = _DEPBAR.search(text)
    return (-1, -1) if found is None else (int(found[1]), int(found[2] or "0x0", 16))


def _find_constant(text: str) -> int:
    """The line of an operand in constant memory; -1 where there is none, where its address is computed, and for loads of constants."""
    found = _CONSTANT.search(text)
    if found is None or found[2] is None or "LDC" in text.partition("c[")[0]:
        return -1
    return int(found[1], 16) * _CONSTANT_BANK_LINES + int(found[2], 16) // _CONSTANT_LINE_BYTES


def _find_course(
    mnemonic: str, text: str, architecture: Architecture, peaks: Mapping[OperationKind, float]
) -> OpcodeCourse:
    name, *modifiers = mnemonic.split(".")
    memory = _find_memory_course(describe_mnemonic(mnemonic), modifiers, architecture)
    if memory is not None:
        return memory
    if name in _ADU:
        unit = LSU if "SR_TID" in text else ADU
        latency = _ADU_CYCLES.get(name, architecture.simulation.special_register_cycles.value)
        return OpcodeCourse(kind=Kind.SPECIAL, unit=unit, latency=latency, interval=_ADU_INTERVAL, is_shared_unit=True)
    if name == "BAR" and "ARV" not in modifiers:
        return OpcodeCourse(kind=Kind.BARRIER, defers="DEFER_BLOCKING" in modifiers)
    is_indirect = name in _RETURNS or _CALL_THROUGH.search(text) is not None
    flow = Kind.RETURN if is_indirect else Kind.BRANCH if name in _BRANCHES else None
    if flow is not None or name in _CONVERGENCES:
        return OpcodeCourse(kind=flow or Kind.CONVERGE)
    if name == "MEMBAR":
        return OpcodeCourse(kind=Kind.MEMBAR)
    pipe = find_pipe(mnemonic, architecture.name)
    if pipe == "tensor":
        return OpcodeCourse(
            pipe=PIPE_NAMES.index("tensor"), interval=find_tensor_cycles(mnemonic, architecture.name, peaks)
        )
    return _find_arithmetic_course(name, modifiers, pipe, architecture)


def find_tensor_cycles(mnemonic: str, architecture: str, peaks: Mapping[OperationKind, float]) -> float:
    """Cycles for which a product of matrices holds the tensor core of a sub-core, at the rate of the types of its factors and its sum.

    Source: pipe_tensor_cycles_active of an A40, whose HMMA.1688.F16 take 8, HMMA.16816.F16 16 and IMMA.8816 4 cycles.
    """
    counted = count_tensor_operations(mnemonic)
    if counted is None:
        return _TENSOR_CYCLES
    kind, operations = counted
    name, *modifiers = mnemonic.split(".")
    if kind is OperationKind.TENSOR_FP16 and "F32" in modifiers:  # as fast as the types that know no other sum
        kind = OperationKind.TENSOR_BF16 if OperationKind.TENSOR_BF16 in peaks else kind
    rate = peaks.get(kind, 0.0) / SUB_CORES
    if architecture == "sm_90" and name in ("HMMA", "IMMA"):
        rate *= _WARP_PRODUCT_RATIO
    return operations / rate if rate else _TENSOR_CYCLES


def _find_memory_course(opcode: Opcode, modifiers: list[str], architecture: Architecture) -> OpcodeCourse | None:
    """Course of an instruction that accesses memory; None for others."""
    name, kind, hierarchy = opcode.name, _KINDS.get(opcode.access) if opcode.access else None, architecture.hierarchy
    if name in _FENCES:
        return OpcodeCourse(kind=Kind.ASYNC_FENCE, is_long=True, latency=_FENCE_CYCLES)
    if kind is not None and opcode.memory in _BEHIND_L1:
        returns = kind in (Kind.LOAD, Kind.ATOMIC)
        extra = max((_WIDE_LOAD_CYCLES.get(one, 0.0) for one in modifiers), default=0.0) if returns else 0.0
        is_strong = name not in ("LDL", "LDGSTS") and _is_strong(modifiers, architecture)
        return OpcodeCourse(
            kind=kind,
            unit=LSU,
            interval=_find_atomic_cycles(modifiers),
            is_lg=True,
            is_long=True,
            latency=(hierarchy.l1_hit_cycles.value or 33.0) + extra,
            uses_l1=not returns or (kind == Kind.LOAD and not is_strong),
            is_async=opcode.access is Access.COPY,
        )
    if name in _THROUGH_SHARED or (kind is not None and opcode.memory is MemorySpace.SHARED):
        shared = architecture.simulation.shuffle_cycles.value
        if name != "SHFL":
            shared = hierarchy.shared_cycles.value or shared
        extra = max((_WIDE_SHARED_CYCLES.get(one, 0.0) for one in modifiers), default=0.0)
        return OpcodeCourse(kind=Kind.SHARED, unit=LSU, latency=shared + extra)
    return None


def _find_atomic_cycles(modifiers: list[str]) -> float:
    """Cycles for which an atomic operation holds an address of L2; of no meaning for other accesses."""
    is_float = "ADD" in modifiers and any(one.startswith(("F16", "F32", "F64", "BF16")) for one in modifiers)
    return _FLOAT_ATOMIC_CYCLES if is_float else _ATOMIC_CYCLES


def _is_strong(modifiers: list[str], architecture: Architecture) -> bool:
    """Whether other SMs must see it, so that L1 does not keep it. On 7.0 every plain access carries ``.SYS``."""
    if "CONSTANT" in modifiers:
        return False
    if architecture.compute_capability[0] == _OLD_MAJOR:
        return "STRONG" in modifiers and "CTA" not in modifiers
    return any(one in _STRONG for one in modifiers)


def _find_arithmetic_course(name: str, modifiers: list[str], pipe: str, architecture: Architecture) -> OpcodeCourse:
    """The course of an operation, by the pipe that executes it."""
    rates = architecture.throughput
    fp64_rate = rates.fp64_instructions_per_cycle.value or 1.0 / 64
    if fp64_rate < _SLOW_FP64 and name in _CONVERSIONS and "F64" in modifiers:
        pipe = "fp64"
    if pipe == "xu":
        rate = rates.mufu_instructions_per_cycle.value
        return OpcodeCourse(
            kind=Kind.SPECIAL,
            unit=XU,
            latency=architecture.simulation.special_function_cycles.value,
            interval=1.0 / rate,
        )
    if pipe == "fp64":
        if fp64_rate >= _SLOW_FP64:
            return OpcodeCourse(pipe=PIPE_NAMES.index("fp64"), interval=1.0 / fp64_rate)
        latency = architecture.producers["fp64"].min_cycles.value or 40.0  # type: ignore[index]
        return OpcodeCourse(
            kind=Kind.SPECIAL,
            unit=FP64_UNIT,
            throttle=TEX_THROTTLE,
            latency=latency,
            interval=1.0 / (SUB_CORES * fp64_rate),
            is_shared_unit=True,
        )
    number = PIPE_NAMES.index(pipe) if pipe in PIPE_NAMES else 0
    rate = {
        "fma": rates.fp32_instructions_per_cycle.value,
        "fp16": rates.fp16_instructions_per_cycle.value,
        "alu": rates.int32_logic_instructions_per_cycle.value,
        "uniform": 0.5,
    }.get(pipe, 1.0)
    if pipe == "fma" and name.startswith(("IMAD", "IMUL", "IDP")):
        heavy = PIPE_NAMES.index("fmaheavy") if rate >= 1 else number
        return OpcodeCourse(pipe=heavy, interval=1.0 / rates.imad_instructions_per_cycle.value)
    if pipe == "fma" and name.startswith("H"):
        rate = rates.fp16_instructions_per_cycle.value
    return OpcodeCourse(pipe=number, interval=1.0 / rate)


BANKS = 2
OPERANDS = 3  # Places of operands that registers are read for
REGISTERS = 256
_MOST_REGISTERS = 4  # Of an operand: what is wider is read while the instruction is executed
_LONE_PLACE = 1  # Of the only operand of an instruction
# Of opcodes that leave one out; the others fill them in the order of the text. Source: the reuse bits of 2,749 instructions of sm_70 to sm_120 beside
# what nvdisasm writes.
_PLACES = {"HADD2": (0, 2)}
_NO_VALUES = (OperandKind.PREDICATE, OperandKind.CONVERGENCE_BARRIER)

NO_READS = RegisterReads()


@lru_cache(maxsize=8192)
def find_register_reads(text: str, reuse: int) -> RegisterReads:
    """The registers an instruction reads.

    >>> find_register_reads("FADD R0, |R7.reuse|, R7", 0b01)
    RegisterReads(first=(7, 7, -1), count=(1, 1, 0), kept=(True, False, False))
    """
    mnemonic, tokens = read_mnemonic(text), read_operands(text)
    roles = find_roles(mnemonic, describe_mnemonic(mnemonic), tokens)
    sources = [
        _list_registers(token, role.width)
        for token, role in zip(tokens, roles, strict=True)
        if role.is_read and parse_operand(token).kind not in _NO_VALUES
    ]
    first, count, kept = [-1] * OPERANDS, [0] * OPERANDS, [False] * OPERANDS
    for place, registers in zip(_find_places(mnemonic, len(sources)), sources, strict=False):
        if registers:
            first[place], count[place], kept[place] = registers[0], len(registers), bool(reuse >> place & 1)
    return RegisterReads(
        first=(first[0], first[1], first[2]), count=(count[0], count[1], count[2]), kept=(kept[0], kept[1], kept[2])
    )


def _list_registers(token: str, width: int) -> Sequence[int]:
    """Registers of an operand, without uniform ones."""
    return [number for number in parse_operand(token).expand(width) if number < REGISTERS][:_MOST_REGISTERS]


def _find_places(mnemonic: str, sources: int) -> Sequence[int]:
    if sources == 1:
        return (_LONE_PLACE,)
    return _PLACES.get(mnemonic.partition(".")[0], range(OPERANDS))
