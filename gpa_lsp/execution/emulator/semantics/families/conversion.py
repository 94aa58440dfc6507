"""``cvt``: among integers, f32, f64, f16 and bf16; into and out of pairs (f16x2, bf16x2, e4m3x2, e5m2x2, e2m1x2, e2m3x2, e3m2x2, ue8m0x2) and tf32;
and ``cvt.pack``.

Of ``cvt d, a, b`` into a pair, a becomes the upper and b the lower element. Source: PTX ISA 9.0, sections 9.7.9.22 and 9.7.9.23.
"""

from gpa_lsp.code.ptx.model import PtxInstruction
from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.execution.emulator.semantics.model import (
    HALVES,
    INTEGRAL,
    ROUNDINGS,
    Family,
    Meaning,
    find_limits,
    find_rounding,
    find_word,
    limit,
    name_bits,
    write_half,
)
from gpa_lsp.foundation.machine_code.types import as_bits, as_float, f64, u32

S = ScalarType
_INTEGERS = frozenset({S.U8, S.S8, S.U16, S.S16, S.U32, S.S32, S.U64, S.S64})
_SCALARS = _INTEGERS | HALVES | {S.F32, S.F64}


def to_integer(value, kind, least_value, above, nothing):
    """A rounded double as an integer, clamped; NaN gives ``nothing``."""
    inside = kind(value) if value < above else above - 1
    return nothing if value != value else least_value if value < least_value else inside


def as_odd(value, kind):
    """An integer of 64 bits as a double, rounded to odd where it has more bits than that, so that it can be rounded again."""
    low = value & 0x7FF
    rounded = value - low | kind(low != 0) << 11
    is_long = value >> 53
    return f64(value if is_long + (is_long & 1) == 0 else rounded)


def sizes_of(value, unsigned):
    """Magnitude of a signed integer."""
    return unsigned(-value) if value < 0 else unsigned(value)


def to_tf32(bits):
    """The high bits of a word; NaN has all of them."""
    return bits << 13 | 0x1FFF if bits == 0x3FFFF else bits << 13


def to_scale(value, rounds_up, saturates):
    """The exponent (u32) of a power of two, 2^-127 … 2^127, at or below a number without its sign, or at or above it; 255: NaN and too large ones."""
    size = as_bits(value) & 0x7FFFFFFF
    power = size >> 23
    if rounds_up:
        power = power + u32((size & 0x7FFFFF) > (0x400000 if power == 0 else 0))
    kept = (254 if saturates else 255) if power > 254 else power
    return 255 if value != value else kept


def from_scale(bits):
    """The power of two of an exponent."""
    return as_float(0x00400000 if bits == 0 else 0x7FFFFFFF if bits == 255 else bits << 23)


def find(instruction: PtxInstruction) -> Meaning | None:
    """A conversion."""
    words = instruction.suffixes
    if "rs" in words or any("scale" in word for word in words):
        return None
    if "pack" in words:
        return _find_pack(instruction)
    return _find_scalar(instruction) or _find_packed(instruction)


# One scalar to one scalar


def _find_scalar(instruction: PtxInstruction) -> Meaning | None:
    if len(instruction.types) != 2 or len(instruction.sources) != 1:
        return None
    result, source = instruction.types
    if result not in _SCALARS or source not in _SCALARS:
        return None
    value = _write_scalar(instruction, source, result)
    return None if value is None else Meaning(sources=(source,), results=(result,), values=(value,))


def _write_scalar(instruction: PtxInstruction, source: ScalarType, result: ScalarType) -> str | None:
    words = instruction.suffixes
    mode = next((word for word in words if word in ROUNDINGS or word in INTEGRAL), "rn")
    if source in _INTEGERS and result in _INTEGERS:
        return _write_integer(source, result, saturates="sat" in words)
    if result in HALVES:
        return _write_half(words, source, result, mode)
    if source in _INTEGERS:
        value = _write_of_integer(source, result, mode)
        return f"saturate({value})" if "sat" in words else value
    value = write_half("a", source) if source in HALVES else f"a({source.value})"
    if "ftz" in words and source is S.F32:
        value = f"flush({value})"
    if result in _INTEGERS:
        return _write_to_integer(value, source, result, mode)
    if "ftz" in words and source in HALVES:
        value = f"flush({value})"
    return _write_float(words, value, S.F32 if source in HALVES else source, result, mode)


def _write_integer(source: ScalarType, result: ScalarType, *, saturates: bool) -> str:
    """Integer to integer: extended by the source's sign, cut off or clamped."""
    value = f"a({source.value})"
    if saturates:
        (low, high), (least, most) = find_limits(source), find_limits(result)
        value = f"clamp({value}, {max(low, least)}, {min(high, most)})"
    return f"{name_bits(result)}({value})"


def _write_to_integer(value: str, source: ScalarType, result: ScalarType, mode: str) -> str | None:
    """Floating point to integer, clamped. NaN gives 0, except where the source is f64 or the result has 64 bits: there it gives the integer with
    only the highest bit set. Source: PTX ISA 9.0, section 9.7.9.22, notes.
    """
    if mode not in INTEGRAL:
        return None
    least, most = find_limits(result)
    nothing = 0
    if source is S.F64 or result.bytes == 8:
        nothing = least if result.is_signed else 1 << 8 * result.bytes - 1
    return f"to_integer(f64({INTEGRAL[mode]}({value})), {result.value}, {least}, {most + 1}, {nothing})"


def _write_of_integer(source: ScalarType, result: ScalarType, mode: str) -> str:
    """Integer to f32 or f64, rounded once."""
    value = f"a({source.value})"
    if mode == "rn" or source.bytes <= 2 or (result is S.F64 and source.bytes <= 4):
        return f"{result.value}({value})"
    size = f"sizes_of({value}, u{8 * source.bytes})" if source.is_signed else value
    sign = f"u64({value} < 0)" if source.is_signed else "0"
    found = f"each_integer(u64({size}), {sign}, {ROUNDINGS[mode]}, {int(result is S.F32)})"
    return f"as_float(u32({found}))" if result is S.F32 else f"as_float({found})"


def _write_half(words: tuple[str, ...], source: ScalarType, result: ScalarType, mode: str) -> str:
    """Any scalar to f16 or bf16."""
    is_single = source is S.F32 or source in HALVES
    if source in HALVES:
        value = write_half("a", source)
    elif source in (S.U64, S.S64):
        value = f"as_odd(a({source.value}), {source.value})"
    elif source in _INTEGERS:
        value = f"f64(a({source.value}))"
    else:
        value = f"flush(a({source.value}))" if "ftz" in words and source is S.F32 else f"a({source.value})"
    if mode in INTEGRAL:
        value = f"{INTEGRAL[mode]}({value})"
    name = "narrow_single" if is_single else "narrow_double"
    rounding = ROUNDINGS[mode if mode in ("rz", "rm", "rp") else "rn"]
    return f"u16({name}({limit(words, value)}, {result.name}, {rounding}, {int('satfinite' in words)}))"


def _write_float(words: tuple[str, ...], value: str, source: ScalarType, result: ScalarType, mode: str) -> str:
    """Conversion between f32 and f64."""
    if mode in INTEGRAL:
        value = f"{INTEGRAL[mode]}({value})"
    if source is S.F64 and result is S.F32:
        if mode in ("rz", "rm", "rp"):
            value = f"as_float(u32(narrow_double({value}, SINGLE, {ROUNDINGS[mode]}, 0)))"
        else:
            value = f"f32({value})"
        value = f"flush({value})" if "ftz" in words else value
    elif source is not result:
        value = f"f64({value})"
    if "sat" in words:
        return f"saturate({value})"
    return f"canonical({value})" if result is S.F32 else value


# Packed numbers, and those of eight bits or fewer: format, bits by which the upper element is moved up, and the register that they stand in

_SMALL = {
    "e4m3x2": ("E4M3", 8, S.U16), "e5m2x2": ("E5M2", 8, S.U16), "e2m3x2": ("E2M3", 8, S.U16), "e3m2x2": ("E3M2", 8, S.U16),
    "e2m1x2": ("E2M1", 4, S.U8), "ue8m0x2": ("SCALE", 8, S.U16),
}  # fmt: skip
_PAIRS = {"f16x2": ("F16", 16, S.U32), "bf16x2": ("BF16", 16, S.U32)}
_FORMATS = frozenset({*_SMALL, *_PAIRS, "f16", "bf16", "f32", "tf32"})


def _find_packed(instruction: PtxInstruction) -> Meaning | None:
    words = instruction.suffixes
    named = [word for word in words if word in _FORMATS]
    if len(named) != 2:
        return None
    result, source = named
    if result == "tf32" and source == "f32":
        return Meaning(
            sources=(S.F32,), results=(S.U32,), values=(f"to_tf32({_write_narrow(words, 'a(f32)', 'TF32')})",)
        )
    name, distance, kind = (_SMALL | _PAIRS).get(result, ("", 0, S.U32))
    if not name:
        return None
    if source == "f32" and len(instruction.sources) == 2:
        high, low = (_write_narrow(words, f"{one}(f32)", name) for one in "ab")
        sources: tuple[ScalarType, ...] = (S.F32, S.F32)
    elif source in _PAIRS and result in _SMALL:
        elements = [f"widen(a(u32) >> {shift} & 0xFFFF, {_PAIRS[source][0]})" for shift in (16, 0)]
        high, low = (_write_narrow(words, one, name) for one in elements)
        sources = (S.U32,)
    elif source in _SMALL and result in _PAIRS:
        of, moved, register = _SMALL[source]
        bits = [f"(u32(a({register.value})) >> {shift} & {(1 << moved) - 1})" for shift in (moved, 0)]
        if of in ("E2M3", "E3M2"):
            bits = [f"({one} & 63)" for one in bits]
        values = [f"from_scale({one})" if of == "SCALE" else f"widen({one}, {of})" for one in bits]
        high, low = (_write_narrow(words, one, name) for one in values)
        sources = (register,)
    else:
        return None
    return Meaning(sources=sources, results=(kind,), values=(f"{kind.value}({high} << {distance} | {low})",))


def _write_narrow(words: tuple[str, ...], value: str, name: str) -> str:
    """f32 as bits of a format, with the rounding, ``.satfinite`` and ``.relu`` of the instruction."""
    mode = find_rounding(words)
    saturates = int("satfinite" in words)
    if name == "SCALE":
        return f"to_scale({value}, {int(mode == 'rp')}, {saturates})"
    return f"narrow_single({limit(words, value)}, {name}, {ROUNDINGS[mode]}, {saturates})"


_PACKED = {"u16": 16, "s16": 16, "u8": 8, "s8": 8, "u4": 4, "s4": 4, "u2": 2, "s2": 2}


def _find_pack(instruction: PtxInstruction) -> Meaning | None:
    """``cvt.pack.sat.convertType.s32{.b32} d, a, b{, c}``: clamped a and b over the low bits of c, moved up."""
    element = find_word(instruction, frozenset(_PACKED))
    if element is None or "s32" not in instruction.suffixes:
        return None
    bits, has_rest = _PACKED[element], len(instruction.sources) == 3
    if has_rest == (bits == 16):
        return None
    least = -(1 << (bits - 1)) if element[0] == "s" else 0
    high, low = (f"(u32(clamp({one}(s32), {least}, {least + (1 << bits) - 1})) & {(1 << bits) - 1})" for one in "ab")
    value = f"{high} << {bits} | {low}" + (f" | c(u32) << {2 * bits}" if has_rest else "")
    return Meaning(sources=(S.S32, S.S32, S.U32)[: 3 if has_rest else 2], results=(S.U32,), values=(value,))


FAMILY = Family(opcodes=("cvt",), find=find)
