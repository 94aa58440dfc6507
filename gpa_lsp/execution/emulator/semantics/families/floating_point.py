"""``add sub mul fma mad div rcp sqrt abs neg min max testp copysign`` and ``ex2 lg2 sin cos tanh rsqrt`` of f32, f64 and f32x2.

Sums, products, fused multiply-adds and the ``.rn rz rm rp`` forms of quotients, reciprocals and roots are rounded exactly. ``div.full``,
``div.approx``, ``rcp.approx`` and ``sqrt.approx`` are rounded to nearest, which is within the errors the ISA allows (2 ulp, 2 ulp, 1 ulp and a
relative 2^-23); so are the functions, computed in double precision by the C library: closer to the true values than the ISA demands, they differ
from a GPU's in their last bits. Source: PTX ISA 9.0, section 9.7.3.
"""

from gpa_lsp.code.ptx.model import PtxInstruction
from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.execution.emulator.semantics.floats import copy_sign
from gpa_lsp.execution.emulator.semantics.model import (
    ROUNDINGS,
    Family,
    Meaning,
    find_rounding,
    find_type,
    find_word,
    name_bits,
    of_one,
    write_extreme,
    write_half,
)
from gpa_lsp.foundation.machine_code.types import as_bits

S = ScalarType
_COUNTS = {"add": 2, "sub": 2, "mul": 2, "div": 2, "fma": 3, "rcp": 1, "sqrt": 1}
_NEAREST = {
    "add": "{0} + {1}", "sub": "{0} - {1}", "mul": "{0} * {1}", "div": "{0} / {1}", "fma": "fma({0}, {1}, {2})", "rcp": "1.0 / {0}",
    "sqrt": "sqrt({0})",
}  # fmt: skip
# LLVM swaps the operands of sums and products: which NaN of several stays is said
_DOUBLE = _NEAREST | {
    "add": "keep_nan({0}, {0} + {1})", "mul": "keep_nan({0}, {0} * {1})", "fma": "keep_nan({0}, keep_nan({1}, fma({0}, {1}, {2})))",
}  # fmt: skip
_EXACT = {
    "add": "fuse_exactly, {0}, 1.0, {1}", "sub": "fuse_exactly, {0}, 1.0, negate({1})", "mul": "multiply_exactly, {0}, {1}, 0.0",
    "div": "divide_exactly, {0}, {1}, 0.0", "fma": "fuse_exactly, {0}, {1}, {2}", "rcp": "divide_exactly, 1.0, {0}, 0.0",
    "sqrt": "root_exactly, {0}, 0.0, 0.0",
}  # fmt: skip
_FUNCTIONS = {
    "ex2": "each(exp2, {0})", "lg2": "each(log2, {0})", "sin": "each(sin, {0})", "cos": "each(cos, {0})", "tanh": "each(tanh, {0})",
    "rsqrt": "1.0 / sqrt({0})",
}  # fmt: skip
_TESTS = {
    "finite": "{0} < {1}", "infinite": "{0} == {1}", "number": "{0} <= {1}", "notanumber": "{0} > {1}",
    "normal": "({0} == 0 or {0} >= {2}) and {0} < {1}", "subnormal": "{0} != 0 and {0} < {2}",
}  # fmt: skip


def divide_roughly(a, b):
    """``div.approx``: a · (1/b), where 1/b of 2^126 < \\|b\\| < 2^128 is flushed to zero: the quotient is 0, or NaN of an infinite a."""
    size = as_bits(b) & 0x7FFFFFFF
    vanishes = (size > 0x7E800000) & (size < 0x7F800000)
    return a * copy_sign(b * 0.0, as_bits(b)) if vanishes else a / b


def find(instruction: PtxInstruction) -> Meaning | None:
    """Arithmetic of single or double precision, or single with one operand of half precision."""
    opcode = instruction.opcode
    if opcode in ("add", "sub", "fma") and len(instruction.types) == 2:
        return _find_mixed(instruction)
    kind = find_type(instruction)
    if kind is S.F32X2:
        return _find_pair(instruction)
    if kind is None or kind not in (S.F32, S.F64):
        return None
    if opcode in ("abs", "neg"):
        return _find_sign(instruction, kind)
    if opcode in ("testp", "copysign"):
        return _find_test(instruction, kind)
    if opcode in ("min", "max"):
        count = 3 if len(instruction.sources) == 3 else 2
        value = write_extreme(instruction, _list_operands(instruction, kind)[:count])
        return of_one(kind, count, f"canonical({value})" if kind is S.F32 else value)
    return _find_single(instruction) if kind is S.F32 else _find_double(instruction)


def _list_operands(instruction: PtxInstruction, kind: ScalarType) -> list[str]:
    """The operands, flushed where the instruction says so."""
    flushes = kind is S.F32 and "ftz" in instruction.suffixes
    return [f"flush({one}({kind.value}))" if flushes else f"{one}({kind.value})" for one in "abc"]


def _finish(instruction: PtxInstruction, value: str) -> str:
    """A number of single precision with ``.ftz`` and ``.sat``."""
    if "ftz" in instruction.suffixes:
        value = f"flush({value})"
    return f"saturate({value})" if "sat" in instruction.suffixes else f"canonical({value})"


def _write_single(opcode: str, operands: list[str], mode: str) -> str:
    """Arithmetic of f32 by its rounding."""
    if mode == "rn":
        return _NEAREST[opcode].format(*operands)
    wide = [f"f64({one})" for one in operands]
    return f"as_float(u32(each_exactly({_EXACT[opcode].format(*wide)}, {ROUNDINGS[mode]}, 1)))"


def _find_single(instruction: PtxInstruction) -> Meaning | None:
    opcode = "fma" if instruction.opcode == "mad" else instruction.opcode
    operands = _list_operands(instruction, S.F32)
    if opcode in _FUNCTIONS:
        value = f"f32({_FUNCTIONS[opcode].format(f'f64({operands[0]})')})"
        return of_one(S.F32, 1, _finish(instruction, value))
    mode = find_rounding(instruction.suffixes)
    if {"approx", "full"} & set(instruction.suffixes):
        mode = "rn"
    if opcode == "div" and "approx" in instruction.suffixes:
        value = f"divide_roughly({operands[0]}, {operands[1]})"
    else:
        value = _write_single(opcode, operands, mode)
    return of_one(S.F32, _COUNTS[opcode], _finish(instruction, value))


def _find_double(instruction: PtxInstruction) -> Meaning | None:
    opcode = "fma" if instruction.opcode == "mad" else instruction.opcode
    if "approx" in instruction.suffixes:
        by_opcode = {"rcp": "1.0 / {0}", "sqrt": "sqrt({0})", "rsqrt": "1.0 / sqrt({0})"}
        if opcode not in by_opcode:
            return None
        if opcode == "rsqrt" and "ftz" not in instruction.suffixes:
            return of_one(S.F64, 1, "1.0 / sqrt(a(f64))")
        value = by_opcode[opcode].format("keep_high_word(a(f64))")
        return of_one(S.F64, 1, f"cut_low_word({value})")
    if opcode not in _COUNTS:
        return None
    mode, operands = find_rounding(instruction.suffixes), _list_operands(instruction, S.F64)
    if mode == "rn":
        return of_one(S.F64, _COUNTS[opcode], _DOUBLE[opcode].format(*operands))
    value = f"as_float(each_exactly({_EXACT[opcode].format(*operands)}, {ROUNDINGS[mode]}, 0))"
    return of_one(S.F64, _COUNTS[opcode], value)


def _find_pair(instruction: PtxInstruction) -> Meaning | None:
    """``add sub mul fma.f32x2``: by halves of 64 bits."""
    if instruction.opcode not in ("add", "sub", "mul", "fma"):
        return None
    parts, mode, count = [], find_rounding(instruction.suffixes), _COUNTS[instruction.opcode]
    flushes = "ftz" in instruction.suffixes
    for shift in (0, 32):
        halves = [f"as_float(u32({one}(u64) >> {shift}))" for one in "abc"]
        operands = [f"flush({one})" for one in halves] if flushes else halves
        value = _write_single(instruction.opcode, operands, mode)
        parts.append(f"u64(as_bits(canonical({f'flush({value})' if flushes else value})))")
    return of_one(S.F32X2, count, f"{parts[0]} | {parts[1]} << 32")


def _find_mixed(instruction: PtxInstruction) -> Meaning | None:
    """``add sub fma.f32.f16|bf16``: the first operand (of fma: the factors) in half precision, all else single."""
    kind, half = instruction.types
    if kind is not S.F32 or half not in (S.F16, S.BF16):
        return None
    is_fused = instruction.opcode == "fma"
    operands = [write_half("a", half), write_half("b", half) if is_fused else "b(f32)", "c(f32)"]
    value = _write_single(instruction.opcode, operands, find_rounding(instruction.suffixes))
    last = "saturate" if "sat" in instruction.suffixes else "canonical"
    sources = (half, half, kind) if is_fused else (half, kind)
    return Meaning(sources=sources, results=(kind,), values=(f"{last}({value})",))


def _find_sign(instruction: PtxInstruction, kind: ScalarType) -> Meaning:
    bits, top = name_bits(kind), 1 << 8 * kind.bytes - 1
    a = f"as_bits({_list_operands(instruction, kind)[0]})" if "ftz" in instruction.suffixes else f"a({bits})"
    return of_one(kind, 1, f"{a} & {top - 1}" if instruction.opcode == "abs" else f"{a} ^ {top}")


def _find_test(instruction: PtxInstruction, kind: ScalarType) -> Meaning | None:
    if instruction.opcode == "copysign":  # copysign d, a, b: b with the sign of a
        return of_one(kind, 2, f"copy_sign(b({kind.value}), a({name_bits(kind)}))")
    word = find_word(instruction, frozenset(_TESTS))
    if word is None:
        return None
    top = 1 << 8 * kind.bytes - 1
    infinite, least_normal = (0x7F800000, 0x00800000) if kind is S.F32 else (0x7FF << 52, 1 << 52)
    value = _TESTS[word].format(f"(a({name_bits(kind)}) & {top - 1})", infinite, least_normal)
    return Meaning(sources=(kind,), results=(S.PRED,), values=(f"u8({value})",))


FAMILY = Family(
    opcodes=(
        "add",
        "sub",
        "mul",
        "fma",
        "mad",
        "div",
        "rcp",
        "sqrt",
        "abs",
        "neg",
        "min",
        "max",
        "testp",
        "copysign",
        *_FUNCTIONS,
    ),
    find=find,
)
