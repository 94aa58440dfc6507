"""How many operations of which type an instruction does for one thread, as a table of opcodes.

Floating point: an addition or a multiplication is one, a multiply-add two, as the profiler's own roofline counts; comparisons, minima, selections
and conversions are none. Packed instructions do it for each of their halves.

Integers: what an instruction does to one thread's integers is one operation (an addition, a bitwise function, a shift, a comparison), and a
multiply-add is two, like everywhere; moves, selections, byte permutations and conversions are none, and so is the uniform datapath, which works
once for the whole warp on a unit of its own. ``IADD3`` and ``LEA`` are one each: more often than not their third operand is RZ or a carry, which
the opcode does not tell. The profiler's ``…_op_integer_pred_on`` counts one for each integer instruction, multiply-adds too.
"""

from functools import lru_cache

from msgspec import Struct

from gpa_lsp.gpu.device.model import OperationKind

_FP64, _FP32, _FP16 = OperationKind.FP64, OperationKind.FP32, OperationKind.FP16
_INT32, _SPECIAL = OperationKind.INT32, OperationKind.SPECIAL


class ThreadOperations(Struct, frozen=True, kw_only=True):
    """What an instruction does for each thread whose guard holds."""

    kind: OperationKind  # the type
    operations: int  # how many
    reason: str  # why so many, a few words


# Opcode → type, operations of one thread, why
_TABLE: dict[str, tuple[OperationKind, int, str]] = {
    "DADD": (_FP64, 1, "an addition"),
    "DMUL": (_FP64, 1, "a multiplication"),
    "DFMA": (_FP64, 2, "a multiply-add"),
    "FADD": (_FP32, 1, "an addition"),
    "FADD32I": (_FP32, 1, "an addition"),
    "FMUL": (_FP32, 1, "a multiplication"),
    "FMUL32I": (_FP32, 1, "a multiplication"),
    "FFMA": (_FP32, 2, "a multiply-add"),
    "FFMA32I": (_FP32, 2, "a multiply-add"),
    "FADD2": (_FP32, 2, "an addition of pairs"),
    "FMUL2": (_FP32, 2, "a multiplication of pairs"),
    "FFMA2": (_FP32, 4, "a multiply-add of pairs"),
    "FHADD": (_FP32, 1, "an addition of a half to a float"),
    "FHFMA": (_FP32, 2, "a multiply-add of halves to a float"),
    "FSWZADD": (_FP32, 1, "an addition across a quad"),
    "HADD2": (_FP16, 2, "an addition of pairs"),
    "HADD2_32I": (_FP16, 2, "an addition of pairs"),
    "HMUL2": (_FP16, 2, "a multiplication of pairs"),
    "HMUL2_32I": (_FP16, 2, "a multiplication of pairs"),
    "HFMA2": (_FP16, 4, "a multiply-add of pairs"),
    "HFMA2_32I": (_FP16, 4, "a multiply-add of pairs"),
    "MUFU": (_SPECIAL, 1, "a special function"),
    "IMAD": (_INT32, 2, "a multiply-add"),
    "IMAD32I": (_INT32, 2, "a multiply-add"),
    "IMUL": (_INT32, 1, "a multiplication"),
    "IMUL32I": (_INT32, 1, "a multiplication"),
    "IDP": (_INT32, 8, "four multiply-adds of bytes"),
    "IDP4A": (_INT32, 8, "four multiply-adds of bytes"),
    "VABSDIFF": (_INT32, 1, "a difference"),
    "VABSDIFF4": (_INT32, 4, "four differences of bytes"),
    "VIADDMNMX": (_INT32, 2, "an addition and a comparison"),
    "VIMNMX3": (_INT32, 2, "two comparisons"),
    **dict.fromkeys(
        ("IADD3", "IADD", "IADD2", "IADD32I", "VIADD", "ISCADD", "ISCADD32I", "LEA", "IABS"), (_INT32, 1, "an addition")
    ),
    **dict.fromkeys(("IMNMX", "VIMNMX", "ISETP", "ISET", "ICMP"), (_INT32, 1, "a comparison")),
    **dict.fromkeys(("LOP3", "LOP", "LOP32I", "BMSK", "SGXT", "BFE", "BFI"), (_INT32, 1, "a bitwise function")),
    **dict.fromkeys(("SHF", "SHL", "SHR", "VSHL", "VSHR"), (_INT32, 1, "a shift")),
    **dict.fromkeys(("POPC", "FLO", "BREV"), (_INT32, 1, "a count or reversal of bits")),
}

# (opcode, first modifier) → what it is instead. ``IMAD.MOV``, ``IMAD.U32``, ``IMAD.IADD`` and ``IMAD.SHL`` are the compiler's way to move, add and
# shift on the pipe of multiplications.
_MODIFIED: dict[tuple[str, str], tuple[int, str]] = {
    ("IMAD", "MOV"): (0, "a move"),
    ("IMAD", "U32"): (0, "a move"),
    ("IMAD", "IADD"): (1, "an addition"),
    ("IMAD", "SHL"): (1, "a shift"),
    ("IDP", "2A"): (4, "two multiply-adds"),
    ("HADD2", "F32"): (0, "a conversion of a half"),
}


@lru_cache(maxsize=4096)
def count_thread_operations(mnemonic: str) -> ThreadOperations | None:
    """What an instruction does for one thread; None when that is no operation that is counted.

    >>> count_thread_operations("FFMA.FTZ")
    ThreadOperations(kind=<OperationKind.FP32: 'FP32'>, operations=2, reason='a multiply-add')
    >>> count_thread_operations("HFMA2.MMA").operations
    4
    >>> count_thread_operations("IMAD.MOV.U32") is None, count_thread_operations("IMAD.WIDE.U32").operations
    (True, 2)
    """
    opcode, *modifiers = mnemonic.split(".")
    entry = _TABLE.get(opcode)
    if entry is None:
        return None
    kind, operations, reason = entry
    if modifiers and (opcode, modifiers[0]) in _MODIFIED:
        operations, reason = _MODIFIED[(opcode, modifiers[0])]
    return ThreadOperations(kind=kind, operations=operations, reason=reason) if operations else None
