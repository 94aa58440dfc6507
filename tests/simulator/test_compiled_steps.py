"""Results of machine code and of numpy are equal, for instructions drawn at random."""

from collections.abc import Iterator

import numpy as np
import pytest

from gpa_lsp.execution.simulator.execution.compiled_steps import find_functions, load_walk
from gpa_lsp.execution.simulator.execution.lowering import Lowering
from gpa_lsp.execution.simulator.execution.memory_spaces import Bank, ConstantBanks
from gpa_lsp.execution.simulator.execution.operand_values import read_instruction
from gpa_lsp.execution.simulator.execution.walk_model import CoreWalk, tabulate
from gpa_lsp.execution.simulator.execution.warp_state import Lanes, WarpState
from tests.simulator.oracle.float_steps import FLOAT_STEPS
from tests.simulator.oracle.integer_steps import INTEGER_STEPS
from tests.simulator.oracle.lane_steps import LANE_STEPS

_WARPS, _REGISTERS = 3, 24
_FILES = ("registers", "uniform", "predicates", "uniform_predicates", "barriers")
_ODD = np.array([
    0, 1, 2, 31, 32, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x3F800000, 0xBF800000, 0x7F800000, 0x7FC00000, 0x3C003C00, 0x7BFF0400,
], np.uint32)  # fmt: skip


def draw_state(random: np.random.Generator) -> WarpState:
    """Registers with numbers of all kinds."""
    state = WarpState(_WARPS, _REGISTERS)
    for column in (state.registers, state.uniform):
        column[:] = random.integers(0, 1 << 32, column.shape, dtype=np.uint64).astype(np.uint32)
        odd = random.random(column.shape) < 0.4
        column[odd] = random.choice(_ODD, int(odd.sum()))
    state.barriers[:] = random.integers(0, 1 << 32, state.barriers.shape, dtype=np.uint64).astype(np.uint32)
    state.predicates[:-1] = random.random(state.predicates[:-1].shape) < 0.5
    state.uniform_predicates[:-1] = random.random(state.uniform_predicates[:-1].shape) < 0.5
    return state


def copy_state(state: WarpState) -> WarpState:
    """Another one like it."""
    copied = WarpState(_WARPS, _REGISTERS)
    for name in _FILES:
        getattr(copied, name)[:] = getattr(state, name)
    return copied


class Operands:
    """Draws operands."""

    def __init__(self, random: np.random.Generator, file: str) -> None:
        self._random, self._file = random, file

    def register(self) -> str:
        """A register, sometimes the one that is zero."""
        number = int(self._random.integers(0, _REGISTERS))
        return f"{self._file}{'Z' if number == 7 else number}"

    def word(self, signs: tuple[str, ...] = ("",), parts: tuple[str, ...] = ("",)) -> str:
        """A register, a constant or an immediate."""
        kind = self._random.integers(0, 6)
        if kind == 0:
            return hex(int(self._random.choice(_ODD)))
        sign = str(self._random.choice(signs))
        if kind == 1:
            return f"{sign}c[0x0][{hex(4 * int(self._random.integers(0, 15)))}]"
        if kind == 2:
            return f"{sign}UR{int(self._random.integers(0, 9))}"
        return f"{sign}{self.register()}{self._random.choice(parts)}"

    def predicate(self) -> str:
        """A predicate that is read."""
        number = int(self._random.integers(0, 8))
        name = f"{'UP' if self._file == 'UR' else 'P'}{'T' if number == 7 else number}"
        return ("!" if self._random.random() < 0.5 else "") + name

    def out(self) -> str:
        """A predicate that is written."""
        return self.predicate().lstrip("!")

    def pick(self, *texts: str) -> str:
        """One of some."""
        return str(self._random.choice(texts))


def draw_integer(random: np.random.Generator, draw: Operands) -> Iterator[str]:
    """Instructions on integers; each form once."""
    negated, inverted, every = ("", "-"), ("", "~"), ("", "-", "~")
    parts = ("", ".H0", ".H1", ".B0", ".B3")
    r, w, p, o = draw.register, draw.word, draw.predicate, draw.out
    yield f"MOV {r()}, {w()}"
    yield f"IADD3 {r()}, {w(every)}, {w(every)}, {w(every)}"
    yield f"IADD3 {r()}, {o()}, {o()}, {w(negated)}, {w(negated)}, {w(inverted)}"
    yield f"IADD3.X {r()}, {o()}, {w(inverted)}, {w(inverted)}, {w()}, {p()}, {p()}"
    yield f"IADD.64 R4, R{2 * int(random.integers(0, 8))}, -R{2 * int(random.integers(0, 8))}"
    yield f"IMAD {r()}, {w()}, {w(negated)}, {w(negated)}"
    yield f"IMAD.MOV.U32 {r()}, RZ, RZ, {w(parts=parts)}"
    yield f"IMAD.X {r()}, {w()}, {w()}, {w(inverted)}, {p()}"
    yield f"IMAD.HI{draw.pick('', '.U32')} {r()}, {draw.pick('PT', o())}, {w()}, {w()}, RZ"
    yield f"IMAD.WIDE{draw.pick('', '.U32')} R8, {draw.pick('PT', 'P2')}, {w()}, {w()}, R{2 * int(random.integers(0, 8))}"
    yield f"LEA {r()}, {draw.pick('PT', 'P1')}, {w()}, {w(negated)}, {hex(int(random.integers(0, 32)))}"
    yield f"LEA.HI {r()}, {w()}, {w()}, {w()}, {hex(int(random.integers(0, 32)))}"
    yield f"LEA.HI.X {r()}, {w()}, {w()}, {w()}, {hex(int(random.integers(0, 32)))}, {p()}"
    yield f"LEA.HI.SX32 {r()}, {w()}, {w()}, {hex(int(random.integers(0, 32)))}"
    yield f"LOP3.LUT {r()}, {w(inverted)}, {w()}, {w()}, {hex(int(random.integers(0, 256)))}, !PT"
    yield f"LOP3.LUT{draw.pick('', '.PAND')} {o()}, {r()}, {w()}, {w()}, {w()}, {hex(int(random.integers(0, 256)))}, {p()}"
    yield f"PLOP3.LUT {o()}, {o()}, {p()}, {p()}, {p()}, {hex(int(random.integers(0, 256)))}, {hex(int(random.integers(0, 256)))}"
    compare, join = draw.pick("LT", "LE", "GT", "GE", "EQ", "NE"), draw.pick("AND", "OR", "XOR")
    yield f"ISETP.{compare}{draw.pick('', '.U32')}.{join} {o()}, {o()}, {w(negated)}, {w()}, {p()}"
    yield f"ISETP.{compare}{draw.pick('', '.U32')}.{join}.EX {o()}, {o()}, {w()}, {w()}, {p()}, {p()}"
    kind, wraps = draw.pick("U32", "S32", "U64", "S64"), draw.pick("", ".W")
    yield f"SHF.{draw.pick('L', 'R')}{wraps}.{kind}{draw.pick('', '.HI')} {r()}, {w()}, {w()}, {w()}"
    yield f"SEL {r()}, {w()}, {w(negated)}, {p()}"
    yield f"IMNMX{draw.pick('', '.U32')} {r()}, {w()}, {w()}, {p()}"
    yield f"PRMT {r()}, {w()}, {w()}, {w()}"
    yield f"VIMNMX{draw.pick('', '.U32')} {r()}, {w()}, {w()}, {p()}"
    yield f"VIADDMNMX{draw.pick('', '.U32')} {r()}, {w()}, {w()}, {w()}, {p()}"
    yield f"SGXT{draw.pick('', '.U32')} {r()}, {w()}, {draw.pick(hex(int(random.integers(0, 34))), w())}"
    yield f"IABS {r()}, {w()}"
    yield f"POPC {r()}, {w(inverted)}"
    yield f"FLO{draw.pick('', '.U32')}{draw.pick('', '.SH')} {r()}, {w(inverted)}"
    yield f"FLO.U32 {r()}, {o()}, {w()}"
    yield f"BREV {r()}, {w()}"
    yield f"BMSK {r()}, {draw.pick(hex(int(random.integers(0, 34))), w())}, {draw.pick(hex(int(random.integers(0, 34))), w())}"
    file = "UPR" if draw.out().startswith("U") else "PR"
    yield f"P2R{draw.pick('', '.B1', '.B3')} {r()}, {file}, {w()}, {hex(int(random.integers(0, 128)))}"


def draw_float(random: np.random.Generator, draw: Operands) -> Iterator[str]:
    """Instructions on floats."""
    signs = ("", "-")
    o, p = draw.out, draw.predicate

    def pair(*more: str) -> str:
        text = f"R{2 * int(random.integers(0, 10))}"
        return draw.pick(text, f"-{text}", f"|{text}|", f"-|{text}|", *more)

    rounding = draw.pick("", ".TRUNC", ".FLOOR", ".CEIL")
    compare = draw.pick(
        *(f"{name}{end}" for name in ("LT", "LE", "GT", "GE", "EQ", "NE") for end in ("", "U")),
        "NUM",
        "NAN",
        "MIN",
        "MAX",
    )
    join = draw.pick("AND", "OR", "XOR")
    integer = draw.pick(".U8", ".S8", ".U16", ".S16", ".U32", "")
    r, w = draw.register, draw.word
    bar = f"|{r()}|"
    yield f"FADD {r()}, {w(signs)}, {draw.pick(bar, '-' + bar, w(signs))}"
    yield f"FMUL {r()}, {w(signs)}, {draw.pick('1.5', '-0.1', '+INF', w(signs))}"
    yield f"FFMA {r()}, {w(signs)}, {w()}, {draw.pick('2.5e-3', w(signs))}"
    part = draw.pick("", ".H0_H0", ".H1_H1")
    yield f"FADD.SAT {r()}, {w(signs)}, {w(signs)}"
    yield f"FFMA.SAT {r()}, {w(signs)}, {w(signs)}, {w(signs)}"
    yield f"DADD R8, {pair()}, {pair('1.5')}"
    yield f"DADD R8, RZ, {pair()}"
    yield f"DMUL R8, {pair()}, {pair('0.1')}"
    yield f"DFMA R8, {pair()}, {pair()}, {pair()}"
    yield f"FSETP.{compare}.{join} {o()}, {o()}, {w(signs)}, {draw.pick(bar, w(signs))}, {p()}"
    yield f"DSETP.{compare}.{join} {o()}, {o()}, {pair()}, {pair('2')}, {p()}"
    yield f"FMNMX {r()}, {w(signs)}, {w(signs)}, {p()}"
    yield f"DMNMX R8, {pair()}, {pair()}, {p()}"
    yield f"FSEL {r()}, {w(signs)}, {w(signs)}, {p()}"
    yield f"MUFU.{draw.pick('RCP', 'RSQ', 'SQRT', 'EX2', 'LG2', 'SIN', 'COS', 'TANH')} {r()}, {draw.pick(bar, w(signs))}"
    yield f"MUFU.{draw.pick('RCP64H', 'RSQ64H')} {r()}, {draw.pick(r(), '3.5')}"
    yield f"FCHK P1, {w(signs)}, {w(signs)}"
    yield f"F2I{integer}{rounding}.NTZ {r()}, {w(signs)}"
    yield f"F2I{draw.pick('.S64', '.U64')}{rounding} R8, {w(signs)}"
    yield f"F2I.F64{rounding} {r()}, {pair()}"
    yield f"I2F{integer}{draw.pick('', '.RZ', '.RM', '.RP')} {r()}, {w()}"
    yield f"I2F.F64{integer} R8, {w()}"
    yield f"I2F{draw.pick('.S64', '.U64')}{draw.pick('', '.RZ', '.RM', '.RP')} {r()}, R{2 * int(random.integers(0, 10))}"
    yield f"F2F.F64.F32 R8, {w(signs)}"
    yield f"F2F.F32.F64 {r()}, {pair()}"
    yield f"F2F.F16.F32 {r()}, {w(signs)}"
    yield f"F2F.F32.F16 {r()}, {r()}{part}"
    yield f"FRND{rounding} {r()}, {w(signs)}"
    yield f"FRND.F64{rounding} R8, {pair()}"
    yield f"F2FP.F16.F32.PACK_AB {r()}, {w(signs)}, {w(signs)}"
    yield f"HADD2.F32 {r()}, {draw.pick('', '-')}{r()}{part}, {r()}"
    yield f"HFMA2.SAT {r()}, {r()}, {r()}{part}, {r()}"
    yield f"HADD2 {r()}, {draw.pick('', '-')}{r()}{part}, {r()}"
    yield f"HMUL2 {r()}, {r()}{part}, {draw.pick(r(), '0.5, 2')}"
    yield f"HFMA2 {r()}, {r()}, {r()}{part}, {draw.pick('-' + r(), '1, 1')}"


def draw_exchange(random: np.random.Generator, draw: Operands) -> Iterator[str]:
    """Instructions across lanes."""
    r, w, p, o = draw.register, draw.word, draw.predicate, draw.out
    clamp = draw.pick("0x1f", "0x181f", "0x1c07", "0x0", w())
    for mode in ("UP", "DOWN", "BFLY", "IDX"):
        yield f"SHFL.{mode} {o()}, {r()}, {w()}, {draw.pick(hex(int(random.integers(0, 32))), w())}, {clamp}"
    for mode in ("ANY", "ALL", "EQ"):
        yield f"VOTE.{mode} {r()}, {o()}, {p()}"
        yield f"VOTE.{mode} {o()}, {p()}"
    yield f"MATCH.ANY {r()}, {w()}"
    yield f"MATCH.ALL {o()}, {r()}, {w()}"
    for mode in ("", ".OR", ".XOR", ".SUM", ".MIN", ".MAX", ".MIN.S32", ".MAX.S32"):
        yield f"REDUX{mode} UR4, {r()}"
    yield f"R2UR UR5, {r()}"
    yield f"BSSY B{random.integers(0, 16)}, 0x100"
    yield f"BREAK B{random.integers(0, 16)}"
    yield f"BMOV.32{draw.pick('', '.CLEAR')} {r()}, B{random.integers(0, 16)}"
    yield f"BMOV.32 B{random.integers(0, 16)}, {r()}"


def run_compiled(text: str, row: dict[str, object], state: WarpState, lanes: Lanes) -> bool:
    """Execute one as machine code; whether it did it."""
    table, resources = tabulate([row])
    walk = CoreWalk.c_type(warps=_WARPS, count=_WARPS)
    given = {
        name: getattr(state, name)
        for name in ("registers", "uniform", "predicates", "uniform_predicates", "barriers", "unknown")
    }
    given |= {"tainted": np.frombuffer(state.tainted, np.uint8), "resources": resources}
    given |= {"chosen": np.arange(_WARPS, dtype=np.int64), "whole": lanes.bits}
    given |= {name: np.zeros(_WARPS, np.uint32) for name in ("bits", "unknown_bits")}
    given["functions"] = find_functions()
    given["results"] = np.zeros((_WARPS, 32), np.uint64)
    for name, column in given.items():
        setattr(walk, name, column.ctypes.data)
    address = np.frombuffer(memoryview(walk).cast("B"), np.uint8)
    stop = load_walk().call("walk_steps", address, table, 0, 1)
    assert stop in (0, 1), text
    return stop == 1


def _forget_which_is_no_number(state: WarpState) -> None:
    """Drop the bits of NaNs among doubles, all of which go to R8."""
    low, high = state.registers[8], state.registers[9]
    value = low.astype(np.uint64) | high.astype(np.uint64) << np.uint64(32)
    high[np.isnan(value.view(np.float64))] = 0x7FF80000
    low[np.isnan(value.view(np.float64))] = 0


@pytest.mark.parametrize("seed", range(40))
def test_steps_are_equal(seed: int) -> None:
    random = np.random.default_rng(seed)
    bank = Bank(data=random.integers(0, 256, 64).astype(np.uint8), known=np.ones(64, np.bool_))
    banks = ConstantBanks({0: bank})
    state = draw_state(random)
    mask = random.random((_WARPS, 32)) < 0.7
    mask[0] = True
    lanes = Lanes(slice(None), mask)
    lowering = Lowering(banks, len(state.registers), {})
    draw = Operands(random, "R")
    tables = INTEGER_STEPS | FLOAT_STEPS | LANE_STEPS
    texts = [*draw_integer(random, draw), *draw_float(random, draw), *draw_exchange(random, draw)]
    for text in texts:
        instruction = read_instruction(0, text)
        row = lowering.lower(instruction)
        assert row is not None, text
        plain, compiled = copy_state(state), copy_state(state)
        assert run_compiled(text, row, compiled, lanes)
        with np.errstate(all="ignore"):
            tables[instruction.opcode](instruction, banks)(plain, lanes)
        _forget_which_is_no_number(plain)
        _forget_which_is_no_number(compiled)
        for name in _FILES:
            assert getattr(compiled, name).tobytes() == getattr(plain, name).tobytes(), (text, name)


def test_a_constant_without_a_value_makes_no_step() -> None:
    """Results of an unknown constant, such as the driver's own in debug builds, are unknown, and the walk goes on."""
    known = np.arange(64) < 32
    lowering = Lowering(ConstantBanks({0: Bank(data=np.zeros(64, np.uint8), known=known)}), 8, {})
    for place in ("c[0x0][0x20]", "c[0x0][0x50]", "c[0x3][0x0]"):
        assert lowering.lower(read_instruction(0, f"IADD3 R0, R1, {place}, RZ")) is None
    assert lowering.lower(read_instruction(0, "IADD3 R0, R1, c[0x0][0x1c], RZ")) is not None


@pytest.mark.parametrize("seed", range(10))
def test_uniform_steps_are_equal(seed: int) -> None:
    random = np.random.default_rng(seed)
    banks = ConstantBanks({0: Bank(data=np.arange(64, dtype=np.uint8), known=np.ones(64, np.bool_))})
    state = draw_state(random)
    mask = random.random((_WARPS, 32)) < 0.5
    mask[1] = False
    lanes = Lanes(slice(None), mask)
    lowering = Lowering(banks, len(state.registers), {})
    done = 0
    for text in draw_integer(random, Operands(random, "UR")):
        name, _, rest = text.replace("RZ", "URZ").replace("UURZ", "URZ").partition(" ")
        if name.startswith(("IADD.64", "IMAD.WIDE")):
            continue  # their registers are not drawn
        instruction = read_instruction(0, f"U{name} {rest.replace('PT', 'UPT').replace('UUPT', 'UPT')}")
        row = lowering.lower(instruction)
        if row is None:
            continue  # a predicate of lanes in it
        plain, compiled = copy_state(state), copy_state(state)
        assert run_compiled(text, row, compiled, lanes)
        INTEGER_STEPS[instruction.opcode.removeprefix("U")](instruction, banks)(plain, lanes)
        for column in ("uniform", "uniform_predicates", "registers", "predicates"):
            assert getattr(compiled, column).tobytes() == getattr(plain, column).tobytes(), text
        done += 1
    assert done >= 10
