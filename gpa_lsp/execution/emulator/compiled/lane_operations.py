"""What operations make of the 32 lanes of their operands: of those executed one by one and of pieces alike.

Each is an expression of typed Python: ``a(T)``, ``b(T)`` and ``c(T)`` are the lanes of its operands as numbers of a type, ``literal`` is a number of
the operation's. What numpy has of it is the same, bit for bit.
"""

from gpa_lsp.foundation.machine_code.types import (
    as_bits,
    as_float,
    u32,
    u64,
    unrolled,
)

_INTEGERS = {
    "add_u": ("U", "a(U) + b(U)"), "sub_u": ("U", "a(U) - b(U)"), "mul_u": ("U", "a(U) * b(U)"), "mad_u": ("U", "a(U) * b(U) + c(U)"),
    "and_u": ("U", "a(U) & b(U)"), "or_u": ("U", "a(U) | b(U)"), "xor_u": ("U", "a(U) ^ b(U)"), "not_u": ("U", "~a(U)"), "neg_u": ("U", "-a(U)"),
    "abs_s": ("U", "-a(U) if a(S) < 0 else a(U)"), "shl_u": ("U", "a(U) << (b(u32) & BITS - 1) if b(u32) < BITS else 0"),
    "shr_u": ("U", "a(U) >> (b(u32) & BITS - 1) if b(u32) < BITS else 0"), "shr_s": ("S", "a(S) >> (b(u32) if b(u32) < BITS else BITS - 1)"),
    "min_u": ("U", "a(U) if a(U) < b(U) else b(U)"), "max_u": ("U", "a(U) if a(U) > b(U) else b(U)"),
    "min_s": ("S", "a(S) if a(S) < b(S) else b(S)"), "max_s": ("S", "a(S) if a(S) > b(S) else b(S)"), "move_u": ("U", "a(U)"),
    "select_u": ("U", "a(U) if c(u8) != 0 else b(U)"),
}  # fmt: skip
_COMPARISONS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
# Ordered and unordered; X and Y stand for the operands
_FLOAT_COMPARISONS = {
    "eq": "X == Y", "ne": "X < Y or X > Y", "lt": "X < Y", "le": "X <= Y", "gt": "X > Y", "ge": "X >= Y", "equ": "not (X < Y or X > Y)",
    "neu": "X != Y", "ltu": "not X >= Y", "leu": "not X > Y", "gtu": "not X <= Y", "geu": "not X < Y", "num": "X == X and Y == Y",
    "nan": "X != X or Y != Y",
}  # fmt: skip
_ROUNDINGS = {"rni": "round_even", "rzi": "truncate", "rmi": "floor", "rpi": "ceil"}
_SINGLE = {
    "add": "a(f32) + b(f32)", "sub": "a(f32) - b(f32)", "mul": "a(f32) * b(f32)", "div": "a(f32) / b(f32)", "fma": "fma(a(f32), b(f32), c(f32))",
    "rcp": "1.0 / a(f32)", "sqrt": "sqrt(a(f32))",
}  # fmt: skip
_OTHERS = {
    "and_pred": ("u8", "a(u8) & b(u8)"), "or_pred": ("u8", "a(u8) | b(u8)"), "xor_pred": ("u8", "a(u8) ^ b(u8)"), "not_pred": ("u8", "a(u8) == 0"),
    "move_pred": ("u8", "a(u8)"),
    "mulhi_u32": ("u32", "u64(a(u32)) * u64(b(u32)) >> 32"), "mulhi_s32": ("s32", "s64(a(s32)) * s64(b(s32)) >> 32"),
    "mulhi_u64": ("u64", "u128(a(u64)) * u128(b(u64)) >> 64"), "mulhi_s64": ("s64", "s128(a(s64)) * s128(b(s64)) >> 64"),
    "madhi_u32": ("u32", "u32(u64(a(u32)) * u64(b(u32)) >> 32) + c(u32)"),
    "madhi_s32": ("s32", "s32(s64(a(s32)) * s64(b(s32)) >> 32) + c(s32)"),
    "cvt_f32_f64": ("f64", "a(f32)"), "cvt_f64_f32": ("f32", "canonical(f32(a(f64)))"),
    "neg_f32": ("u32", "a(u32) ^ 0x80000000"), "abs_f32": ("u32", "a(u32) & 0x7FFFFFFF"),
    "min_f32": ("f32", "canonical(least(a(f32), b(f32)))"), "max_f32": ("f32", "canonical(greatest(a(f32), b(f32)))"),
    "min_f32_ftz": ("f32", "canonical(least(flush(a(f32)), flush(b(f32))))"),
    "max_f32_ftz": ("f32", "canonical(greatest(flush(a(f32)), flush(b(f32))))"),
    "add_f64": ("f64", "keep_nan(a(f64), a(f64) + b(f64))"), "sub_f64": ("f64", "a(f64) - b(f64)"),
    "mul_f64": ("f64", "keep_nan(a(f64), a(f64) * b(f64))"), "div_f64": ("f64", "a(f64) / b(f64)"),
    "fma_f64": ("f64", "keep_nan(a(f64), keep_nan(b(f64), fma(a(f64), b(f64), c(f64))))"), "rcp_f64": ("f64", "1.0 / a(f64)"),
    "sqrt_f64": ("f64", "sqrt(a(f64))"), "neg_f64": ("u64", "a(u64) ^ 0x8000000000000000"), "abs_f64": ("u64", "a(u64) & 0x7FFFFFFFFFFFFFFF"),
    "min_f64": ("f64", "least(a(f64), b(f64))"), "max_f64": ("f64", "greatest(a(f64), b(f64))"),
    "popc_u32": ("u32", "popcount(a(u32))"), "popc_u64": ("u32", "popcount(a(u64))"), "clz_u32": ("u32", "leading_zeros(a(u32))"),
    "clz_u64": ("u32", "leading_zeros(a(u64))"), "brev_u32": ("u32", "reverse_bits(a(u32))"),
    "lop3_u32": ("u32", "combine_bits(a(u32), b(u32), c(u32), literal)"),
    "shf_u32": ("u32", "funnel(a(u32), b(u32), c(u32), literal & 1, literal & 2)"), "prmt_u32": ("u32", "permute(a(u32), b(u32), c(u32))"),
    "pack_u64": ("u64", "u64(b(u32)) << 32 | u64(a(u32))"), "pack_u32": ("u32", "u32(b(u16)) << 16 | u32(a(u16))"),
    "low_u64": ("u32", "a(u64)"), "high_u64": ("u32", "a(u64) >> 32"), "low_u32": ("u16", "a(u32)"), "high_u32": ("u16", "a(u32) >> 16"),
}  # fmt: skip
# What NaN becomes as an unsigned integer of so many bits
_NO_NUMBER_OF_DOUBLES = {16: 0, 32: 1 << 31, 64: 1 << 63}


def _list_operations() -> dict[str, tuple[str, str]]:
    """Type of the result and expression, by name."""
    found: dict[str, tuple[str, str]] = {}
    for bits in (16, 32, 64):
        for name, (kind, text) in _INTEGERS.items():
            sized = (
                part.replace("U", f"u{bits}").replace("S", f"s{bits}")
                for part in (kind, text.replace("BITS", str(bits)))
            )
            found[f"{name}{bits}"] = next(sized), next(sized)
    for kind in ("u16", "s16", "u32", "s32", "u64", "s64"):
        found |= {f"{name}_{kind}": ("u8", f"a({kind}) {sign} b({kind})") for name, sign in _COMPARISONS.items()}
    for kind, one in (("f32", "a(f32)"), ("f32_ftz", "flush(a(f32))"), ("f64", "a(f64)")):
        for name, text in _FLOAT_COMPARISONS.items():
            other = one.replace("a(", "b(")
            parts = (f"a({kind[:3]})", f"b({kind[:3]})") if name in ("num", "nan") else (one, other)
            found[f"{name}_{kind}"] = "u8", text.replace("X", parts[0]).replace("Y", parts[1])
    for kind, wide in (("u16", "u32"), ("s16", "s32"), ("u32", "u64"), ("s32", "s64")):
        product = f"{wide}(a({kind})) * {wide}(b({kind}))"
        found[f"mulwide_{kind}"], found[f"madwide_{kind}"] = (wide, product), (wide, f"{product} + c({wide})")
    for kind in ("u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64"):
        found |= {f"cvt_{kind}_{bits}": (f"u{bits}", f"a({kind})") for bits in (8, 16, 32, 64)}
        found |= {f"cvt_{kind}_{real}": (real, f"a({kind})") for real in ("f32", "f64")}
    for mode, rounding in _ROUNDINGS.items():
        found |= _list_roundings(mode, rounding)
    for name, text in _SINGLE.items():
        flushed = (
            text.replace("a(f32)", "flush(a(f32))")
            .replace("b(f32)", "flush(b(f32))")
            .replace("c(f32)", "flush(c(f32))")
        )
        found[f"{name}_f32"] = "f32", f"canonical({text})"
        found[f"{name}_f32_ftz"] = "f32", f"canonical(flush({flushed}))"
    return found | _OTHERS


def _list_roundings(mode: str, rounding: str) -> dict[str, tuple[str, str]]:
    found = {
        f"cvt_f32_f32_{mode}": ("f32", f"canonical({rounding}(a(f32)))"),
        f"cvt_f64_f64_{mode}": ("f64", f"{rounding}(a(f64))"),
    }
    for bits in (16, 32, 64):
        for sign in "su":
            kind = f"{sign}{bits}"
            least, above = (-(1 << bits - 1), 1 << bits - 1) if sign == "s" else (0, 1 << bits)
            nothing = _NO_NUMBER_OF_DOUBLES[bits] if sign == "u" else -_NO_NUMBER_OF_DOUBLES[bits]
            of_single = nothing if bits == 64 else 0
            for real, none in (("f32", of_single), ("f64", nothing)):
                value = f"f64({rounding}(a({real})))"
                if real == "f32" or bits > 16:
                    found[f"cvt_{real}_{kind}_{mode}"] = kind, f"to_integer({value}, {kind}, {least}, {above}, {none})"
    return found


OPERATIONS = _list_operations()  # Type of the result and expression, by name
EXCHANGES = (
    "shfl_up",
    "shfl_down",
    "shfl_bfly",
    "shfl_idx",
    "vote_ballot",
    "vote_any",
    "vote_all",
    "activemask",
    "multiply_matrices",
    "column",
    "local",
)
CODES = {name: code for code, name in enumerate((*OPERATIONS, *EXCHANGES))}
FIRST_EXCHANGE = len(OPERATIONS)


def canonical(value):
    """Every NaN of single precision has these bits."""
    return value if value == value else as_float(u32(0x7FFFFFFF))


def flush(value):
    """Subnormal numbers become zero."""
    bits = as_bits(value)
    return as_float(bits & 0x80000000) if (bits & 0x7F800000) == 0 else value


def least(a, b):
    """The lesser; of zeros the negative one, a number rather than NaN, and of two NaNs the first."""
    chosen = a if b != b else b if a != a else a if a < b else b
    return as_float(as_bits(a) | as_bits(b)) if a == b else chosen


def greatest(a, b):
    """The greater; of zeros the positive one, a number rather than NaN, and of two NaNs the first."""
    chosen = a if b != b else b if a != a else a if a > b else b
    return as_float(as_bits(a) & as_bits(b)) if a == b else chosen


def keep_nan(first, result):
    """A result; where the first operand is NaN, that one, made quiet: LLVM swaps the operands of sums and products."""
    return result if first == first else as_float(as_bits(first) | 1 << 51)


def to_integer(value, kind, least_value, above, nothing):
    """A rounded double as an integer: clamped; what is not a number gives what is asked for."""
    inside = kind(value) if value < above else above - 1
    return nothing if value != value else least_value if value < least_value else inside


def combine_bits(a, b, c, table):
    """LOP3: a logical function of three bits, by its truth table of eight."""
    found = a & 0
    for term in unrolled(8):
        if table >> term & 1:
            found |= (a if term & 4 else ~a) & (b if term & 2 else ~b) & (c if term & 1 else ~c)
    return found


def funnel(low, high, amount, left, wraps):
    """A word of two that were shifted together."""
    both = u64(high) << 32 | u64(low)
    least_amount = amount if amount < 32 else 32
    by = (amount & 31) if wraps else least_amount
    return u32(both << by >> 32) if left else u32(both >> by)


def permute(low, high, selector):
    """Four bytes of eight; or of each, in eight bits, its sign."""
    both = u64(high) << 32 | u64(low)
    found = low & 0
    for place in unrolled(4):
        nibble = selector >> 4 * place & 15
        byte = u32(both >> 8 * (nibble & 7)) & 255
        found |= ((byte >> 7) * 255 if (nibble & 8) != 0 else byte) << 8 * place
    return found


def write_expressions() -> str:
    """Typed Python of all operations, as functions of their operands."""
    return "\n".join(
        f"def {name}(a, b, c, literal):\n    return {kind}({text})\n" for name, (kind, text) in OPERATIONS.items()
    )


def write_operations() -> str:
    """Typed Python of all operations on places in memory, and of what these call."""
    places = ", ".join(f"{one}: Pointer[u8]" for one in ("out", "a", "b", "c"))
    return write_expressions() + "\n".join(
        f"def lane_{name}({places}, literal: s64) -> s64:\n"
        f"    put(view(out, {kind}), {name}(a, b, c, literal))\n    return 0\n"
        for name, (kind, _) in OPERATIONS.items()
    )
