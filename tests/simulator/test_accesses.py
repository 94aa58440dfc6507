"""Accesses of warps, drawn at random, beside what each lane does by itself, byte by byte; and what is noted of them."""

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt
import pytest
from msgspec import Struct

from gpa_lsp.code.binary.model import ResourceKind, encode_resource
from gpa_lsp.code.ptx.static_instructions import AccessKind
from gpa_lsp.code.symbolic_accesses.requests import count_wavefronts
from gpa_lsp.execution.emulator.semantics.model import LOCAL_WINDOW, SHARED_WINDOW
from gpa_lsp.execution.simulator.execution.compiled_steps import BoundStep, CompiledSteps, Segment, WalkFaultError
from gpa_lsp.execution.simulator.execution.lowering import Lowering
from gpa_lsp.execution.simulator.execution.memory_spaces import (
    FIRST_BANK,
    GLOBAL_BASE,
    Bank,
    ConstantBanks,
    MemorySpace,
    MemorySpaces,
)
from gpa_lsp.execution.simulator.execution.operand_values import read_instruction
from gpa_lsp.execution.simulator.execution.recording import Recorder
from gpa_lsp.execution.simulator.execution.walk_model import Flag, tabulate
from gpa_lsp.execution.simulator.execution.warp_state import Lanes, WarpState
from gpa_lsp.execution.simulator.warp_walk import LOCAL_SECTOR, WarpWalk

_LANES = np.arange(32, dtype=np.int64)
_GLOBAL_BYTES, _SHARED_BYTES, _LOCAL_BYTES = 4096, 1024, 64
_WIDTHS = {"U8": 1, "S8": 1, "U16": 2, "S16": 2, "": 4, "64": 8, "128": 16}
_SPACES = {"G": MemorySpace.GLOBAL, "S": MemorySpace.SHARED, "L": MemorySpace.LOCAL}
_BASES = {
    MemorySpace.GLOBAL: GLOBAL_BASE, MemorySpace.SHARED: SHARED_WINDOW, MemorySpace.LOCAL: LOCAL_WINDOW,
}  # fmt: skip


class Scene(Struct):
    """One warp and its memories."""

    state: WarpState
    spaces: MemorySpaces
    banks: ConstantBanks
    recorder: Recorder


def draw_scene(random: np.random.Generator) -> Scene:
    """Registers and bytes at random; a quarter of the words of global and shared memory are not known."""
    bank = Bank(data=random.integers(0, 256, 256).astype(np.uint8), known=np.repeat(random.random(64) < 0.8, 4))
    banks = ConstantBanks({3: bank})
    data = random.integers(0, 256, _GLOBAL_BYTES).astype(np.uint8)
    spaces = MemorySpaces(data, np.zeros(1, np.int64), _SHARED_BYTES, _LOCAL_BYTES, banks)
    state = WarpState(1, 32)
    state.registers[:] = random.integers(0, 1 << 32, state.registers.shape, dtype=np.uint64).astype(np.uint32)
    for space in MemorySpace:
        memory = spaces.memories[space]
        memory.data[:] = random.integers(0, 256, len(memory.data)).astype(np.uint8)
        if space != MemorySpace.LOCAL:
            memory.make_marks()
            assert memory.unknown is not None
            memory.unknown[:] = random.random(len(memory.unknown)) < 0.25
    return Scene(state=state, spaces=spaces, banks=banks, recorder=Recorder(1, keeps_walks=True))


def execute(scene: Scene, text: str, mask: npt.NDArray[np.bool_], writes: tuple[int, ...] = ()) -> WarpWalk:
    """Execute an instruction by some lanes of the warp."""
    instruction, lanes = read_instruction(0, text), Lanes(slice(None), mask[None])
    row = Lowering(scene.banks, len(scene.state.registers), {}).lower(instruction)
    assert row is not None, text
    written = [encode_resource(ResourceKind.REGISTER, one) for one in writes]
    row = {"read": [], "write": written, **row, "flags": row.get("flags", 0) | Flag.ASKED}
    table, resources = tabulate([row])
    step = BoundStep(instruction=instruction, lowered=row, refusal="", moves_control=False)
    segment = Segment(first=0, steps=(step,), table=table, resources=resources)
    specials = np.zeros((1, 1, 32), np.uint32)
    CompiledSteps(scene.state, scene.spaces, specials, scene.recorder).run(segment, lanes)
    scene.recorder.end(0, 1, lanes)
    return scene.recorder.take_walks([0], [(0, 0, 0)], [0])[0]


def give_addresses(scene: Scene, addresses: npt.NDArray[np.int64]) -> None:
    """Let R4 and R5 hold them."""
    scene.state.registers[4][0], scene.state.registers[5][0] = addresses & 0xFFFFFFFF, addresses >> 32


def draw_places(random: np.random.Generator, room: int, width: int) -> npt.NDArray[np.int64]:
    """Aligned places, some of them equal, some in a row."""
    count = room // width
    found = random.integers(0, count, 32) if random.random() < 0.5 else np.minimum(_LANES, count - 1)
    return found * width


def find_bytes(space: MemorySpace, lane: int, place: int, width: int) -> list[int]:
    """Places of the bytes of a lane: in local memory, words of lanes are interleaved."""
    if space != MemorySpace.LOCAL:
        return list(range(place, place + width))
    return [one // 4 * 128 + lane * 4 + one % 4 for one in range(place, place + width)]


def list_cases(kind: str) -> Iterator[tuple[str, str, MemorySpace]]:
    """Mnemonics of accesses with their widths and spaces; generic ones beside the others."""
    for letter, space in _SPACES.items():
        for width in _WIDTHS:
            end = f".{width}" if width else ""
            yield f"{kind}{letter}{'.E' if letter == 'G' else ''}{end}", width, space
            yield f"{kind}.E{end}", width, space


def is_unknown(scene: Scene, space: MemorySpace, places: list[int]) -> bool:
    """Whether one of some bytes has no known value."""
    unknown = scene.spaces.memories[space].unknown
    return unknown is not None and any(bool(unknown[one // 4]) for one in places)


def find_noted(space: MemorySpace, places: npt.NDArray[np.int64], mask: npt.NDArray[np.bool_], width: int) -> set[int]:
    """Sectors that lanes touch."""
    base = {MemorySpace.GLOBAL: GLOBAL_BASE // 32, MemorySpace.LOCAL: LOCAL_SECTOR}.get(space)
    if base is None:
        return set()
    lanes = np.flatnonzero(mask).tolist()
    return {base + one // 32 for lane in lanes for one in find_bytes(space, lane, int(places[lane]), width)}


def count_noted(
    space: MemorySpace, places: npt.NDArray[np.int64], mask: npt.NDArray[np.bool_], width: int, kind: AccessKind
) -> int:
    """Passes by the banks of shared memory, of loads from global memory as many as its words at least, and else a line at a time."""
    sectors = find_noted(space, places, mask, width)
    if space == MemorySpace.LOCAL or (space == MemorySpace.GLOBAL and kind == AccessKind.STORE):
        return len({one // 4 for one in sectors})
    kinds = np.full(1, kind, np.int8)
    passes = int(count_wavefronts(places[None].astype(np.uint64), mask[None], width, kinds)[0][0])
    return max(passes, -(-width // 4)) if space == MemorySpace.GLOBAL else passes


def describe(scene: Scene, mnemonic: str, space: MemorySpace, places: npt.NDArray[np.int64]) -> str:
    """Give the addresses that a form of access wants; the operand."""
    is_generic = mnemonic.startswith(("LD.", "ST."))
    has_base = is_generic or space == MemorySpace.GLOBAL
    give_addresses(scene, places - 16 + (_BASES[space] if has_base else 0))
    return "[R4.64+0x10]" if has_base else "[R4+0x10]"


@pytest.mark.parametrize("seed", range(4))
def test_loads(seed: int) -> None:
    random = np.random.default_rng(seed)
    for mnemonic, name, space in list_cases("LD"):
        scene, width, mask = draw_scene(random), _WIDTHS[name], random.random(32) < 0.8
        places = draw_places(random, _LOCAL_BYTES if space == MemorySpace.LOCAL else _SHARED_BYTES, width)
        before, operand = scene.state.registers.copy(), describe(scene, mnemonic, space, places)
        walk = execute(scene, f"{mnemonic} R8, {operand}", mask, tuple(range(8, 8 + max(width // 4, 1))))
        data = scene.spaces.memories[space].data
        for lane in range(32):
            where = find_bytes(space, lane, int(places[lane]), width)
            value = int.from_bytes(bytes(data[where]), "little", signed=name.startswith("S"))
            for word in range(max(width // 4, 1)):
                wanted = value >> 32 * word & 0xFFFFFFFF if mask[lane] else before[8 + word, 0, lane]
                assert scene.state.registers[8 + word, 0, lane] == wanted, (mnemonic, lane)
            marked = bool(scene.state.unknown[8, 0] >> np.uint32(lane) & 1)
            assert marked == (bool(mask[lane]) and is_unknown(scene, space, where)), (mnemonic, lane)
        assert set(walk.sectors.tolist()) == find_noted(space, places, mask, width), mnemonic
        assert walk.wavefronts[0] == count_noted(space, places, mask, width, AccessKind.LOAD), mnemonic


@pytest.mark.parametrize("seed", range(4))
def test_stores(seed: int) -> None:
    random = np.random.default_rng(seed)
    for mnemonic, name, space in list_cases("ST"):
        if name.startswith("S"):
            continue
        scene, width, mask = draw_scene(random), _WIDTHS[name], random.random(32) < 0.8
        places = draw_places(random, _LOCAL_BYTES if space == MemorySpace.LOCAL else _SHARED_BYTES, width)
        wanted, operand = scene.spaces.memories[space].data.copy(), describe(scene, mnemonic, space, places)
        unknown = scene.state.unknown[encode_resource(ResourceKind.REGISTER, 8)]
        unknown[0], scene.state.has_unknown = 0b1010, True
        walk = execute(scene, f"{mnemonic} {operand}, R8", mask)
        marks = scene.spaces.memories[space].unknown
        assert marks is not None
        marked = {}
        for lane in np.flatnonzero(mask).tolist():
            where = find_bytes(space, lane, int(places[lane]), width)
            value = b"".join(int(scene.state.registers[8 + word, 0, lane]).to_bytes(4, "little") for word in range(4))
            wanted[where] = np.frombuffer(value[:width], np.uint8)
            marked |= {one // 4: lane in (1, 3) for one in where}
        assert np.array_equal(scene.spaces.memories[space].data, wanted), mnemonic
        assert {one: bool(marks[one]) for one in marked} == marked, mnemonic
        assert set(walk.sectors.tolist()) == find_noted(space, places, mask, width), mnemonic
        assert walk.wavefronts[0] == count_noted(space, places, mask, width, AccessKind.STORE), mnemonic


_CHANGES: dict[str, Callable[[int, int, int], int]] = {
    "ADD": lambda old, new, _: old + new, "MIN": lambda old, new, _: min(old, new), "MAX": lambda old, new, _: max(old, new),
    "AND": lambda old, new, _: old & new, "OR": lambda old, new, _: old | new, "XOR": lambda old, new, _: old ^ new,
    "EXCH": lambda old, new, _: new, "INC": lambda old, new, _: 0 if old >= new else old + 1,
    "DEC": lambda old, new, _: new if old == 0 or old > new else old - 1,
    "CAS": lambda old, new, other: other if old == new else old, "POPC.INC": lambda old, new, _: old + 1,
}  # fmt: skip


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("change", _CHANGES)
def test_atomic_operations(change: str, seed: int) -> None:
    random = np.random.default_rng(seed)
    for kind in ("", ".64", ".S32", ".S64"):
        scene, width, mask = draw_scene(random), 8 if "64" in kind else 4, random.random(32) < 0.8
        places = draw_places(random, 128, width)
        give_addresses(scene, places)
        data = scene.spaces.memories[MemorySpace.SHARED].data.copy()
        operands = "R12, R14" if change == "CAS" else "R12"
        text = f"ATOMS.{change}{kind} R8, [R4]{'' if change == 'POPC.INC' else ', ' + operands}"
        walk = execute(scene, text, mask, (8, 9)[: width // 4])
        signed = kind.startswith(".S") and change in ("MIN", "MAX")
        for lane in np.flatnonzero(mask).tolist():
            at = slice(int(places[lane]), int(places[lane]) + width)
            old, new, other = (
                int.from_bytes(one.tobytes(), "little", signed=signed)
                for one in (
                    data[at],
                    np.ascontiguousarray(scene.state.registers[12 : 12 + width // 4, 0, lane]),
                    np.ascontiguousarray(scene.state.registers[14 : 14 + width // 4, 0, lane]),
                )
            )
            found = int.from_bytes(
                np.ascontiguousarray(scene.state.registers[8 : 8 + width // 4, 0, lane]).tobytes(),
                "little",
                signed=signed,
            )
            assert found == old, text
            made = _CHANGES[change](old, new, other) % (1 << 8 * width)
            data[at] = np.frombuffer(made.to_bytes(width, "little"), np.uint8)
        assert np.array_equal(scene.spaces.memories[MemorySpace.SHARED].data, data), text
        assert walk.wavefronts[0] == count_noted(MemorySpace.SHARED, places, mask, width, AccessKind.ATOMIC), text


@pytest.mark.parametrize(
    ("operation", "done_in"),
    [
        ("ADD.F32.FTZ.RN", "G"), ("ADD.F64.RN", "G"), ("ADD.64", "G"), ("MAX.S64", "G"), ("ADD", "GS"), ("MIN.S32", "GS"),
        ("CAS.64", "GS"), ("EXCH.64", "GS"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("space", _SPACES)
def test_memory_that_lacks_an_operation_says_so(space: str, operation: str, done_in: str) -> None:
    random = np.random.default_rng(7)
    scene, mask = draw_scene(random), random.random(32) < 0.8
    width = 8 if "64" in operation else 4
    places = (_LANES if space != "L" else _LANES * 0) * width
    give_addresses(scene, places + _BASES[_SPACES[space]])
    memory, before = scene.spaces.memories[_SPACES[space]].data, scene.state.predicates[2][0].copy()
    kept, registers = memory.copy(), scene.state.registers.copy()
    execute(scene, f"ATOM.E.{operation}.STRONG.GPU P2, R8, [R4.64], R12, R14", mask, (8, 9)[: width // 4])
    found = scene.state.predicates[2][0]
    assert (found[mask] == (space in done_in)).all() and (found[~mask] == before[~mask]).all()
    if not operation.startswith("CAS"):  # which finds another value
        assert np.array_equal(memory, kept) == (space not in done_in)
    assert np.array_equal(scene.state.registers, registers) == (space not in done_in)


@pytest.mark.parametrize("width", [4, 8, 16])
def test_copies_to_shared_memory(width: int) -> None:
    random = np.random.default_rng(width)
    scene, mask, fetches = draw_scene(random), random.random(32) < 0.8, random.random(32) < 0.6
    places, targets = draw_places(random, _SHARED_BYTES, width), random.permutation(32) * width
    give_addresses(scene, places + GLOBAL_BASE)
    scene.state.registers[6][0], scene.state.predicates[2][0] = targets, fetches
    wanted = scene.spaces.memories[MemorySpace.SHARED].data.copy()
    end = "" if width == 4 else f".{8 * width}"
    walk = execute(scene, f"LDGSTS.E{end} [R6+0x20], desc[UR4][R4.64], P2", mask)
    data, unknown = (getattr(scene.spaces.memories[MemorySpace.GLOBAL], name) for name in ("data", "unknown"))
    marks = scene.spaces.memories[MemorySpace.SHARED].unknown
    assert marks is not None
    for lane in np.flatnonzero(mask).tolist():
        place, target = int(places[lane]), int(targets[lane]) + 32
        wanted[target : target + width] = data[place : place + width] if fetches[lane] else 0
        for word in range(0, width, 4):
            assert marks[(target + word) // 4] == (fetches[lane] and unknown[(place + word) // 4])
    assert np.array_equal(scene.spaces.memories[MemorySpace.SHARED].data, wanted)
    assert set(walk.sectors.tolist()) == find_noted(MemorySpace.GLOBAL, places, mask & fetches, width)


@pytest.mark.parametrize("name", ["U8", "S8", "U16", "S16", "", "64"])
def test_loads_of_constants(name: str) -> None:
    random, width = np.random.default_rng(len(name)), _WIDTHS[name]
    scene, mask = draw_scene(random), random.random(32) < 0.8
    offsets = draw_places(random, 128, width)
    scene.state.registers[4][0] = offsets
    walk = execute(scene, f"LDC{f'.{name}' if name else ''} R8, c[0x3][R4+0x40]", mask, (8, 9)[: max(width // 4, 1)])
    bank = scene.spaces.memories[FIRST_BANK + 3]
    assert bank.unknown is not None
    for lane in np.flatnonzero(mask).tolist():
        at = int(offsets[lane]) + 64
        value = int.from_bytes(bank.data[at : at + width].tobytes(), "little", signed=name.startswith("S"))
        for word in range(max(width // 4, 1)):
            assert scene.state.registers[8 + word, 0, lane] == value >> 32 * word & 0xFFFFFFFF
        is_known = not bank.unknown[at // 4 : (at + width + 3) // 4].any()
        assert bool(scene.state.unknown[8, 0] >> np.uint32(lane) & 1) != is_known
    assert walk.wavefronts[0] == len(np.unique(offsets[mask])) and not len(walk.sectors)


def test_matrices_are_read_at_the_addresses_that_some_lanes_hold() -> None:
    scene = draw_scene(np.random.default_rng(1))
    give_addresses(scene, np.where(_LANES < 8, 16 * _LANES, 1 << 20))
    walk = execute(scene, "LDSM.16.M88 R8, [R4]", np.ones(32, np.bool_), (8,))
    assert walk.wavefronts[0] == 1 and scene.state.unknown[8, 0] == 0xFFFFFFFF


def test_halves_are_added_to_what_is_not_known() -> None:
    scene = draw_scene(np.random.default_rng(2))
    give_addresses(scene, GLOBAL_BASE + 4 * _LANES)
    walk = execute(scene, "RED.E.ADD.F16x2.RN.STRONG.GPU [R4.64], R8", np.ones(32, np.bool_))
    unknown = scene.spaces.memories[MemorySpace.GLOBAL].unknown
    assert unknown is not None and unknown[:32].all() and len(walk.sectors) == 4 and walk.wavefronts[0] == 1


@pytest.mark.parametrize(
    ("text", "addresses", "reason"),
    [
        ("LDG.E.64 R8, [R4.64]", GLOBAL_BASE + 4 + 8 * _LANES, "an access to global memory is not aligned to its 8 bytes"),
        ("LDS R8, [R4]", 64 * _LANES, "an access lies outside of the shared memory of its block"),
        ("STL [R4], R8", 4 * _LANES, "an access lies outside of the local memory of its thread"),
        ("LD.E R8, [R4.64]", SHARED_WINDOW - 4 * (_LANES % 2), "the lanes of one access go to several memories"),
    ],
)  # fmt: skip
def test_what_goes_nowhere_says_so(text: str, addresses: npt.NDArray[np.int64], reason: str) -> None:
    scene = draw_scene(np.random.default_rng(3))
    give_addresses(scene, addresses)
    with pytest.raises(WalkFaultError, match=reason):
        execute(scene, text, np.ones(32, np.bool_))


def test_an_address_without_a_value_says_so() -> None:
    scene = draw_scene(np.random.default_rng(4))
    give_addresses(scene, GLOBAL_BASE + 4 * _LANES)
    scene.state.unknown[5], scene.state.has_unknown = 1, True
    with pytest.raises(WalkFaultError, match="its address depends on a value that is not known"):
        execute(scene, "LDG.E R8, [R4.64]", np.ones(32, np.bool_))


@pytest.mark.parametrize(
    ("offsets", "passes"),
    [(0 * _LANES, 32), (4 * (_LANES % 8), 4), (4 * _LANES, 1), (128 * _LANES % 4096, 32), (128 * (_LANES % 2), 32)],
)
def test_lanes_that_name_one_address_of_global_memory_are_passes_of_their_own(
    offsets: npt.NDArray[np.int64], passes: int
) -> None:
    for text in ("RED.E.ADD.STRONG.GPU [R4.64], R8", "ATOMG.E.ADD.STRONG.GPU PT, R9, [R4.64], R8"):
        scene = draw_scene(np.random.default_rng(5))
        give_addresses(scene, GLOBAL_BASE + offsets)
        assert execute(scene, text, np.ones(32, np.bool_)).wavefronts[0] == passes
    assert execute(scene, "STG.E [R4.64], R8", np.ones(32, np.bool_)).wavefronts[0] <= passes
