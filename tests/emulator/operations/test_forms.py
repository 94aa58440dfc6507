"""Every form of an operation of lanes gives the bits of the oracle, on numbers at the edges of its types, small ones, and any."""

import itertools
import re
import zlib
from collections.abc import Iterator

import numpy as np
import pytest

from gpa_lsp.code.ptx.model import Immediate, Operand
from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.execution.emulator.compiled.core_functions import LaneOperation as CoreOperation
from gpa_lsp.execution.emulator.semantics.find import find_meaning
from gpa_lsp.execution.emulator.semantics.model import flatten
from tests.emulator.operations.evaluating import prepare, read_instruction
from tests.emulator.oracle.find import bind_operation
from tests.emulator.oracle.model import LaneOperation, WarpOperation

_LANES = 2048
_STORED = {16: (10, 7), 32: (23,), 64: (52,)}  # bits of fractions of the floats of a width
_LETTERS = {
    "f32": "%f",
    "f64": "%e",
    "f16": "%h",
    "bf16": "%h",
    "pred": "%p",
    "f16x2": "%r",
    "bf16x2": "%r",
    "f32x2": "%d",
}
_INTEGERS = "{u16,s16,u32,s32,u64,s64}"
_MODES = "{rn,rz,rm,rp}"
_COMPARED = "{eq,ne,lt,le,gt,ge,equ,neu,ltu,leu,gtu,geu,num,nan}"
_WHOLE = "{rni,rzi,rmi,rpi}"
# Names in which braces stand for several words, and operands: R and T are registers of the first and the last type of the name, W one twice as
# wide as T; p, h, r, d and f registers of predicates, 16, 32 and 64 bits and float; a number stands for itself
FORMS = (
    # integers
    "{add,sub,mul.lo,mul.hi,min,max,div,rem}." + _INTEGERS + " T T T",
    "{mul.wide}.{u16,s16,u32,s32} W T T",
    "{mad.wide}.{u16,s16,u32,s32} W T T W",
    "{mad.lo,mad.hi,sad}." + _INTEGERS + " T T T T",
    "{mul24.lo,mul24.hi}.{u32,s32} T T T",
    "{mad24.lo,mad24.hi}.{u32,s32} T T T T",
    "{add.sat,sub.sat}.{s32,u32} r r r",
    "mad.hi.sat.s32 r r r r",
    "{abs,neg}.{s16,s32,s64} T T",
    "{add.cc,addc.cc,addc,sub.cc,subc.cc,subc}.{u32,s32,u64,s64} T T T",
    "{mad,madc}.{lo,hi}.cc.{u32,s32,u64,s64} T T T T",
    "madc.{lo,hi}.{u32,s64} T T T T",
    "dp4a.{u32,s32}.{u32,s32} r r r r",
    "dp2a.{lo,hi}.{u32,s32}.{u32,s32} r r r r",
    "{add,sub,min,max,add.sat,sub.sat,max.relu}.{u16x2,s16x2,u8x4,s8x4} r r r",
    "{min,max}.relu.s32 r r r",
    # bits
    "{and,or,xor}.{b16,b32,b64,pred} T T T",
    "{not,cnot}.{b16,b32,b64} T T",
    "not.pred p p",
    "lop3.b32 r r r r {0,1,2,4,8,16,32,64,128,150,232,255}",
    "lop3.{or,and}.b32 r|p r r r {128,254,150} p",
    "{shl.b,shr.b,shr.u,shr.s}{16,32,64} T T r",
    "{shl.b,shr.u,shr.s}{16,32,64} T T {0,1,5,15,16,31,32,33,63,64,255,65536}",
    "shf.{l,r}.{clamp,wrap}.b32 r r r r",
    "shf.{l,r}.{clamp,wrap}.b32 r r r {0,1,8,31,32,40}",
    "{popc,clz}.{b32,b64} r T",
    "brev.{b32,b64} T T",
    "{bfind,bfind.shiftamt}.{u32,s32,u64,s64} r T",
    "fns.b32 r r r r",
    "fns.b32 r r {0,5,31,40} {-2,0,1,3}",
    "bfe.{u32,s32,u64,s64} T T r r",
    "bfe.{u32,s32,u64,s64} T T {0,7,31,40} {0,8,32,33,255}",
    "bfi.{b32,b64} T T T r r",
    "bfi.{b32,b64} T T T {0,7,31,40} {0,8,32,33,255}",
    "bmsk.{clamp,wrap}.b32 r r r",
    "szext.{clamp,wrap}.{u32,s32} r r r",
    "prmt.b32{,.f4e,.b4e,.rc8,.ecl,.ecr,.rc16} r r r {r,0,1,2,3}",
    "prmt.b32 r r r {12816,30292,21520,30258,291,17185,34952,65244,4180,8738,63546}",
    # comparisons and selections
    "setp.{eq,ne,lt,le,gt,ge}.{s16,s32,s64} p T T",
    "setp.{eq,ne,lt,le,gt,ge,lo,ls,hi,hs}.{u16,u32,u64} p T T",
    "setp.{eq,ne}.{b16,b32,b64} p T T",
    "setp." + _COMPARED + ".{f32,f64,f16,bf16,ftz.f32} p T T",
    "setp.{gt,neu}.ftz.f16 p h h",
    "setp.{lt,geu}.{and,or,xor}.f32 {p,p|p} f f p",
    "setp.lt.{and,or,xor}.s32 {p,p|p} r r p",
    "setp.{lt,neu}.f32 p|p f f",
    "setp.{lt,eq,gtu}.{f16x2,bf16x2} p|p r r",
    "setp.{lt,geu}.or.{f16x2,bf16x2} p|p r r p",
    "set.{lt,geu}.{u32,s32,f32}.{f32,f64} R T T",
    "set.{lt,ne}.{u32,f32}.s32 R T T",
    "set.eq.xor.u32.s32 r r r p",
    "set.lt.{f16.f16,f16x2.f16x2,u32.f16x2} R T T",
    "selp.{b16,b32,b64,s32,u64,f32,f64} T T T p",
    "slct.{u32,s32,f32,b64,f64}.s32 R R R r",
    "slct{,.ftz}.{u32,b64,f32}.f32 R R R f",
    # moves
    "mov.{b16,b32,b64,f32,f64,pred} T T",
    "mov.b32 {h#h} r",
    "mov.b32 r {h#h}",
    "mov.b64 {h#h#h#h} d",
    "mov.b64 d {h#h#h#h}",
    "mov.b64 {r#r} d",
    "mov.b64 d {r#r}",
    # video
    "{vadd,vsub,vabsdiff,vmin,vmax}{2,4}.{u32.u32.u32,s32.s32.s32,s32.u32.s32}{,.sat,.add} r r r r",
    "vavrg4.{s32.s32.s32,u32.u32.u32} r r r r",
    "vset{2,4}.u32.u32.{gt,eq,le} r r r r",
    "vadd.s32.s32.u32 r r.b0 r.h0",
    "vsub.u32.u32.u32.add r r.b3 r.b0 r",
    "vadd.u32.u32.u32 r.b2 r.b1 r.b0 r",
    "vmad.s32.s32.s32{,.shr7,.shr15,.po} r r.h1 r.b1 r",
    "vadd.u32.u32.u32.{max,min} r r r r",
    "{vshl,vshr}.u32.{u32,s32}.u32.{wrap,clamp} r r r",
    "vset.u32.u32.{gt,ne} r r r",
    # floats
    "{add,sub,mul,div}." + _MODES + ".{f32,f64} T T T",
    "{add,sub,mul,div}." + _MODES + ".ftz.f32 f f f",
    "{add,sub,mul}{,.ftz}.sat.f32 f f f",
    "div.{approx,full}{,.ftz}.f32 f f f",
    "fma." + _MODES + ".{f32,f64,ftz.f32} T T T T",
    "fma.rn{,.ftz}.sat.f32 f f f f",
    "{sqrt,rcp}." + _MODES + ".{f32,f64} T T",
    "{rcp,rsqrt}.approx.ftz.f64 T T",
    "{ex2,lg2,sin,cos,tanh,rsqrt,sqrt,rcp}.approx{,.ftz}.f32 f f",
    "{neg,abs}.{f32,f64,ftz.f32} T T",
    "copysign.{f32,f64} T T T",
    "testp.{finite,infinite,number,notanumber,normal,subnormal}.{f32,f64} p T",
    "{min,max}{,.ftz,.NaN,.xorsign.abs,.NaN.xorsign.abs}.f32 f f f",
    "{min,max}.f64 T T T",
    "{min,max}{,.NaN,.xorsign.abs}.f32 f f f f",
    "{add,sub}.f32.{f16,bf16} f T f",
    "fma.rn.f32.{f16,bf16} f T T f",
    "{add,sub,mul}.rn.f32x2 d d d",
    "fma.{rn,rz}.ftz.f32x2 d d d d",
    # halves
    "{add,sub,mul}.rn.{f16,bf16,f16x2,bf16x2} T T T",
    "fma.rn{,.relu}.{f16,bf16,f16x2,bf16x2} T T T T",
    "{add,mul}{.sat,.ftz}.{f16,f16x2} T T T",
    "{min,max}{,.NaN,.xorsign.abs}.{f16,bf16,f16x2,bf16x2} T T T",
    "{neg,abs}.{f16,bf16,f16x2,bf16x2} T T",
    "{neg,abs}.ftz.{f16,f16x2} T T",
    "{ex2,tanh}.approx.{f16,f16x2} T T",
    "{ex2.approx.ftz,tanh.approx}.{bf16,bf16x2} T T",
    # conversions
    "cvt{,.sat}.{u8,s8,u16,s16,u32,s32,u64,s64}.{u8,s8,u16,s16,u32,s32,u64,s64} R T",
    "cvt." + _MODES + ".{f16,f32,f64}.{u8,s8,u16,s16,u32,s32,u64,s64} R T",
    "cvt." + _MODES + ".bf16.{u16,s16,u32,s32,u64,s64} R T",
    "cvt." + _WHOLE + ".{u8,s8,u16,s16,u32,s32,u64,s64}.{f16,bf16,f32,f64} R T",
    "cvt.rpi.ftz.s32.f32 r f",
    "cvt." + _MODES + ".{f32.f64,f16.f64,bf16.f64,f16.f32,bf16.f32,bf16.f16,f16.bf16} R T",
    "cvt{,.ftz}.{f64.f32,f32.f16,f64.f16,f32.bf16,f64.bf16} R T",
    "cvt." + _WHOLE + ".{f16.f16,f32.f32,f64.f64} R T",
    "cvt.rn{.ftz,.sat}.{f32.f64,f16.f32} R T",
    "cvt.sat.f32.f32 f f",
    "cvt.rn{.satfinite,.relu}.{f16,bf16}.f32 h f",
    "cvt.{rn,rz}{,.relu,.satfinite}.{f16x2,bf16x2}.f32 r f f",
    "cvt.rn.satfinite{,.relu}.{e4m3x2,e5m2x2}.f32 h f f",
    "cvt.rn.satfinite{,.relu}.{e2m1x2,e2m3x2,e3m2x2}.f32 h f f",
    "cvt.rn.satfinite{,.relu}.{e4m3x2,e5m2x2}.f16x2 h r",
    "cvt.rn.f16x2.{e4m3x2,e5m2x2,e2m1x2,e2m3x2,e3m2x2} r h",
    "cvt.{rz,rp}{,.satfinite}.ue8m0x2.f32 h f f",
    "cvt.rn.bf16x2.ue8m0x2 r h",
    "cvt.{rna,rn,rz}.tf32.f32 r f",
    "cvt.pack.sat.{u8,s8}.s32.b32 r r r r",
    "cvt.pack.sat.{u16,s16}.s32 r r r",
    # exchanges
    "shfl.sync.{up,down,bfly,idx}.b32 {r,r|p} r {r,0,1,16,33} {r,0,31,6175,7199,4103} MEMBERS",
    "shfl.{down,bfly}.b32 r r 1 31",
    "vote.sync.{all,any,uni}.pred p p MEMBERS",
    "vote.sync.ballot.b32 r p MEMBERS",
    "vote.ballot.b32 r p",
    "match.any.sync.{b32,b64} r T MEMBERS",
    "match.all.sync.{b32,b64} {r,r|p} T MEMBERS",
    "redux.sync.{add.u32,add.s32,min.u32,max.u32,min.s32,max.s32,and.b32,or.b32,xor.b32} T T MEMBERS",
    "redux.sync.{min,max}{,.abs,.NaN,.abs.NaN}.f32 f f MEMBERS",
    "movmatrix.sync.aligned.m8n8.trans.b16 r r",
)  # fmt: skip


def expand(form: str) -> Iterator[str]:
    """Texts of a form, with numbered registers."""
    form = re.sub(r"\{(\w(?:#\w)*#\w)\}", r"<\1>", form).replace("MEMBERS", "r")  # vectors are no choices
    choices = [part[1:-1].split(",") if part[0] == "{" else [part] for part in re.split(r"(\{[^}]*\})", form) if part]
    for words in itertools.product(*choices):
        name, _, operands = "".join(words).partition(" ")
        numbers = itertools.count()

        def write(match: re.Match[str], types: list[str], numbers: Iterator[int] = numbers) -> str:
            letter = match[0]
            kind = types[0] if letter == "R" else types[-1] if types else ""
            width = int(re.sub(r"\D", "", kind) or 0) * (2 if letter == "W" else 1) if "x" not in kind else 32
            own = {"p": "%p", "h": "%h", "r": "%r", "d": "%d", "f": "%f"}.get(letter)
            by_width = {8: "%h", 16: "%h", 32: "%r", 64: "%d"}
            return f"{own or _LETTERS.get(kind) or by_width[width]}{next(numbers)}"

        types = [word for word in name.split(".")[1:] if re.fullmatch(r"[usb]\d+|b?f\d+(x2)?|pred", word)]
        written = re.sub(r"(?<![\w.])[RTWphrdf](?!\w)", lambda one, types=types: write(one, types), operands)
        text = f"{name} {', '.join(written.split())}"
        yield text.replace("<", "{").replace(">", "}").replace("#", ", ").replace(",,", ",")


def draw_bits(random: np.random.Generator, bits: int, place: int, *, is_float: bool) -> np.ndarray:
    """Patterns of a width: every pair of those at its edges, then floats beside 1, small numbers, and any."""
    top, any_of = 1 << bits, random.integers(0, 1 << bits, _LANES, dtype=np.uint64)
    edges = [0, 1, 2, top - 1, top - 2, top // 2, top // 2 - 1, top // 2 + 1, top // 3, 1 << bits // 2]
    near = []
    for stored in _STORED.get(bits, ()):
        infinity, one = top // 2 - (1 << stored), (top // 4 - (1 << stored)) & ~((1 << stored) - 1)
        least = 1 << stored
        positive = [least - 1, least, least + 1, one - 1, one, one + 1, infinity - 1, infinity, infinity | least >> 1]
        positive += [one + least, one + least * 3 // 2, one - least, one + least * (stored + 1)]
        edges += [pattern | sign for pattern in positive for sign in (0, top // 2)]
        around = one + random.integers(-4 * least, 4 * least, _LANES)
        near.append(around.astype(np.uint64) | random.integers(0, 2, _LANES, dtype=np.uint64) << np.uint64(bits - 1))
    small = random.integers(0, 70, _LANES, dtype=np.uint64)
    kinds = [random.choice(np.array(edges, np.uint64), _LANES), *near, any_of, near[0] if is_float else small, small]
    found = np.choose(random.integers(0, len(kinds), _LANES), kinds)
    if place < 2:
        pairs = np.array(list(itertools.product(edges, repeat=2)), np.uint64)[: _LANES * 3 // 4, place]
        found[: len(pairs)] = pairs
    return found.astype(f"u{bits // 8}")


def draw(random: np.random.Generator, place: int, operand: Operand | None, kind: ScalarType) -> np.ndarray:
    """Values of a source."""
    dtype = kind.natural_dtype
    if isinstance(operand, Immediate):
        return np.full(_LANES, int(operand.value) % (1 << 8 * dtype.itemsize), f"u{dtype.itemsize}").view(dtype)
    if kind is ScalarType.PRED:
        return random.integers(0, 2, _LANES).astype(np.bool_)
    return draw_bits(random, 8 * dtype.itemsize, place, is_float=dtype.kind == "f").view(dtype)


def differs(text: str) -> bool:
    """Whether some lane of the core's has other bits than the oracle's."""
    instruction, random = read_instruction(text), np.random.Generator(np.random.PCG64(zlib.crc32(text.encode())))
    operation, meaning = bind_operation(instruction), find_meaning(instruction)
    assert operation is not None and meaning is not None, text
    operands = zip(itertools.count(), flatten(instruction.sources), meaning.sources)
    given = [draw(random, *one) for one in operands]
    active = np.ones((_LANES // 32, 32), np.bool_)
    members = getattr(operation, "member_mask_source", None)
    if isinstance(operation, WarpOperation):
        active[3:] = random.integers(0, 2, active[3:].shape) | (np.arange(32) == 3)
        given = [one if place % 3 else one % 3 for place, one in enumerate(given)] if "match" in text else given
        given[0][:32] = given[0][0]
    if members is not None:
        masks = np.packbits(active, axis=1, bitorder="little").view("<u4")
        halves = np.where(np.arange(32) % 2, np.uint32(0xAAAAAAAA), np.uint32(0x55555555))
        given[members] = np.where(np.arange(len(masks))[:, None] % 4 == 1, masks & halves, masks + 0 * halves).ravel()
    if isinstance(operation, LaneOperation) and operation.reads_carry:
        given.append(random.integers(0, 2, _LANES).astype(np.bool_))
    warps = [one.reshape(-1, 32) for one in given]
    found = CoreOperation(meaning).evaluate(active, *warps)
    with np.errstate(all="ignore"):
        if isinstance(operation, WarpOperation):
            wanted = operation.evaluate(active, *warps)
        else:
            sources = [one.view(kind.natural_dtype) for one, kind in zip(given, operation.source_types, strict=False)]
            wanted = operation.evaluate(*sources, *given[len(sources) :])
    return any(
        (_bits(one, active) != _bits(other, active)).any()
        for one, other in zip(_several(found), _several(wanted), strict=True)
    )


def _several(results: object) -> tuple[object, ...]:
    return results if isinstance(results, tuple) else (results,)


def _bits(values: object, active: np.ndarray) -> np.ndarray:
    array = np.ascontiguousarray(np.broadcast_to(np.asarray(values).reshape(-1, 32), active.shape))
    return array.view(f"u{array.dtype.itemsize}")[active]


@pytest.mark.parametrize("form", FORMS)
def test_the_core_gives_the_bits_of_the_oracle(form: str) -> None:
    texts = list(expand(form))
    prepare(*texts)
    assert [text for text in texts if differs(text)] == []


def test_the_lowest_member_that_is_active_is_elected() -> None:
    meaning = find_meaning(read_instruction("elect.sync %r1|%p1, %r2"))
    assert meaning is not None
    operation = CoreOperation(meaning)
    leader, is_leader = operation.evaluate((np.arange(32) != 8)[None], np.full((1, 32), 0xFF00, np.uint32))
    assert leader[0, 9] == 9 and np.flatnonzero(is_leader).tolist() == [9]
