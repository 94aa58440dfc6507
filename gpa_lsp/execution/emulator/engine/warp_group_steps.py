"""``wgmma``: products of matrices by four warps, from registers and from shared memory by descriptor, done at once.

``wgmma.mma_async`` may run on while its warps do; here it is done when they come to it, in the order of the program, which is one of the orders it
may be done in. What begins, commits and waits has nothing left to do. Each warp works on its own 16 rows, once all four are there.

Shared memory is read by the tensor core, not by lanes: these reads are checked (bounds, races, uninitialized words; as if the lanes of each
warp took turns), but they are no accesses of a trace.

Source: PTX ISA 9.0, section 9.7.15 (asynchronous warpgroup level matrix instructions). Numbers are summed in double precision and
rounded once, as by :mod:`gpa_lsp.execution.emulator.compiled.matrices`.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from gpa_lsp.code.ptx.model import PtxInstruction
from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.execution.emulator.engine.binder import Binder, UnsupportedInstruction, read_as
from gpa_lsp.execution.emulator.engine.fragments import Fragment, guarded_mask
from gpa_lsp.execution.emulator.engine.machine import Machine
from gpa_lsp.execution.emulator.engine.values import BOOL, U32, U64, WARP_LANES, Value
from gpa_lsp.execution.emulator.engine.warp_group_products import (
    GROUP_WARPS,
    UNIT_BYTES,
    WARP_ROWS,
    WarpGroupProduct,
    arrange,
    find_rows,
    has_base_offset,
    multiply_floats,
    multiply_integers,
    pack,
    read_product,
    unpack,
)
from gpa_lsp.execution.emulator.model import FaultKind
from gpa_lsp.execution.emulator.semantics.matrix_layouts import BITS, left_fragment, register_type, sum_fragment
from gpa_lsp.execution.emulator.semantics.model import flatten
from gpa_lsp.foundation.numbers import format_count
from gpa_lsp.foundation.records import ColumnRecord

_MOST_SUMS = 1 << 18  # Elements of D that are worked on at once, so that they stay in the cache
_LANES = np.arange(WARP_LANES)

Rows = npt.NDArray[np.int64]


def is_warp_group_product(instruction: PtxInstruction) -> bool:
    """Whether a ``wgmma`` multiplies; the others begin, commit and wait."""
    return instruction.suffixes[:1] == ("mma_async",)


def bind_warp_group(binder: Binder) -> None:
    """``wgmma.mma_async``, and what begins, commits and waits.

    Raises:
        UnsupportedInstruction: a form that is not known, sparse matrices.
    """
    instruction = binder.instruction
    if instruction.suffixes[:1] in (("fence",), ("commit_group",), ("wait_group",)):
        binder.finish()
        return
    product = read_product(instruction) if is_warp_group_product(instruction) else None
    if product is None:
        raise UnsupportedInstruction
    vector = flatten(instruction.destinations)
    if len(vector) != product.result_registers:
        raise UnsupportedInstruction("vector of this length")
    left, right, keeps = instruction.sources[:3]
    kind = register_type(product.result)
    step = _Step(
        product=product,
        sums=[binder.read(one, kind) for one in vector],
        left=[
            binder.read(one, ScalarType.U32 if product.left_is_vector else ScalarType.U64) for one in flatten((left,))
        ],
        right=binder.read(right, ScalarType.U64),
        keeps=binder.read(keeps, ScalarType.PRED),
        results=[binder.write(one, kind) for one in vector],
        guard=binder.guard,
        static=binder.static,
        machine=binder.machine,
    )
    binder.steps.append(step.run)
    binder.finish()


class _Step(Struct, frozen=True, kw_only=True):
    """One instruction."""

    product: WarpGroupProduct  # what it multiplies
    sums: list[int]  # slots of D
    left: list[int]  # slots of A, or that of its descriptor
    right: int  # slot of the descriptor of B
    keeps: int  # slot of the predicate: D is added to
    results: list[int]  # slots that take the new D
    guard: int | None  # slot of its guard; None without one
    static: int  # number of the instruction
    machine: Machine  # of the launch

    def run(self, fragment: Fragment) -> None:
        """Multiply, some warps at a time."""
        active = guarded_mask(fragment, self.guard).reshape(-1, WARP_LANES)
        rows = np.flatnonzero(active.any(axis=1))
        kind = register_type(self.product.result)
        out = np.zeros((len(self.results), len(active), WARP_LANES), kind.natural_dtype)
        most = _MOST_SUMS // (WARP_ROWS * self.product.columns) // GROUP_WARPS * GROUP_WARPS
        for start in range(0, len(rows), most):
            part = _Part(fragment, rows[start : start + most], active[rows[start : start + most]])
            out[:, part.rows] = self._multiply(part)
        for slot, registers in zip(self.results, out, strict=True):
            fragment.registers[slot] = registers.reshape(-1)

    def _multiply(self, part: "_Part") -> Any:
        """Registers of the new D: [r, w, 32]."""
        product = self.product
        sums = sum_fragment(WARP_ROWS, product.columns)
        kind = register_type(product.result).natural_dtype
        d = sums.gather(unpack(np.stack([part.take(slot, kind) for slot in self.sums], -1), product.result))
        d = np.where(part.take_first(self.keeps, BOOL)[:, None, None], d, d.dtype.type(0))
        a = self._read_left(part)
        b, runs = self._read_right(part)
        if product.is_negated:
            a = np.negative(a)
        shape = d.shape
        if len(part.rows) % len(b) == 0 and (runs == np.arange(len(runs)) // (len(runs) // len(b))).all():
            # Warps of the same B, one below the other: one product for each B.
            a, d = (one.reshape(len(b), -1, one.shape[2]) for one in (a, d))
        else:
            b = b[runs]
        b = b.swapaxes(1, 2)
        if product.result is ScalarType.S32:
            d = multiply_integers(a, b, d, clamps=product.clamps)
        else:
            d = multiply_floats(a, b, d)
        return np.moveaxis(pack(sums.scatter(d.reshape(shape)), product.result), -1, 0)

    def _read_left(self, part: "_Part") -> Any:
        """A: [w, 16, depth]."""
        product = self.product
        if product.left_is_vector:
            registers = np.stack([part.take(slot, U32) for slot in self.left], -1)
            layout = left_fragment(WARP_ROWS, product.depth, 32 // BITS[product.left])
            return layout.gather(unpack(registers, product.left))
        descriptors, usable = self._read_descriptors(part, self.left[0])
        whole = find_rows(descriptors, GROUP_WARPS * WARP_ROWS, is_turned=product.left_is_turned)
        warps = np.arange(len(whole))
        addresses = whole.reshape(len(whole), GROUP_WARPS, -1)[warps, part.find_ranks() % GROUP_WARPS]
        words = self._load(part, addresses, usable, warps)
        return arrange(words, product.left, is_turned=product.left_is_turned)

    def _read_right(self, part: "_Part") -> tuple[Any, Rows]:
        """B, turned: [x, columns, depth]; and which of them each warp has: int64[w], ascending."""
        product = self.product
        descriptors, usable = self._read_descriptors(part, self.right)
        slots = part.find_slots()
        is_other = np.ones(len(slots), np.bool_)
        is_other[1:] = (slots[1:] != slots[:-1]) | (descriptors[1:] != descriptors[:-1])
        first, runs = np.flatnonzero(is_other), np.cumsum(is_other) - 1
        addresses = find_rows(descriptors[first], product.columns, is_turned=product.right_is_turned)
        words = self._load(part, addresses, usable, runs)
        return arrange(words, product.right, is_turned=product.right_is_turned), runs

    def _read_descriptors(self, part: "_Part", slot: int) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.bool_]]:
        """The descriptor of each warp: uint64[w]; and whether it can be used: bool[w]. Those that cannot are noted."""
        first = part.take_first(slot, U64)
        differs = ((part.take(slot, U64) != first[:, None]) & part.active).any(axis=1)
        groups = part.find_slots() * WARP_LANES + part.find_ranks() // GROUP_WARPS
        differs[1:] |= (groups[1:] == groups[:-1]) & (first[1:] != first[:-1])
        has_offset = has_base_offset(first)
        for wrong, why in (
            (differs, "lanes of a warp group give different descriptors"),
            (has_offset, "a descriptor has a base offset"),
        ):
            self._note(part, wrong, FaultKind.UNSUPPORTED, f"wgmma.mma_async is not emulated ({why})")
        return first, ~differs & ~has_offset

    def _load(self, part: "_Part", addresses: Rows, usable: npt.NDArray[np.bool_], runs: Rows) -> Any:
        """Read rows of 16 bytes."""
        size_bytes = self.machine.geometry.shared_bytes
        outside = addresses > size_bytes - UNIT_BYTES
        slots = np.empty(len(addresses), np.int64)
        slots[runs] = part.find_slots()
        if outside.any():
            reason = f"the block's shared memory has {format_count(size_bytes)} bytes"
            message = f"load of {UNIT_BYTES} bytes at byte {format_count(int(addresses[outside][0]))}: {reason}"
            self._note(part, usable & np.asarray(outside.any(axis=1))[runs], FaultKind.OUT_OF_BOUNDS, message)
            addresses = np.where(outside, 0, addresses)
        memory = part.fragment.batch.memory
        self._watch(part, addresses[runs], usable[:, None] & ~outside[runs])
        if size_bytes < UNIT_BYTES:
            return np.zeros((*addresses.shape, UNIT_BYTES // 4), np.uint32)
        words = memory.take_shared(slots, addresses)
        return np.where(outside[:, :, None], np.uint32(0), words) if outside.any() else words

    def _watch(self, part: "_Part", addresses: Rows, allowed: npt.NDArray[np.bool_]) -> None:
        """Watch reads [w, r] as if the lanes of each warp took turns."""
        fragment = part.fragment
        if fragment.batch.checks is None:
            return
        for first in range(0, addresses.shape[1], WARP_LANES):
            width = min(WARP_LANES, addresses.shape[1] - first)
            places = np.zeros((len(part.rows), WARP_LANES), np.int64)
            mask = np.zeros(places.shape, np.bool_)
            places[:, :width], mask[:, :width] = addresses[:, first : first + width], allowed[:, first : first + width]
            fragment.batch.watch(fragment.warps.ids[part.rows], places, mask)

    def _note(self, part: "_Part", wrong: npt.NDArray[np.bool_], kind: FaultKind, message: str) -> None:
        """Note a fault of the lanes of some warps."""
        lanes = (part.rows[wrong, None] * WARP_LANES + _LANES)[part.active[wrong]]
        faults, static = self.machine.faults, self.static
        faults.add_lanes(kind, message, part.fragment.warps, lanes, instruction=static)


class _Part(ColumnRecord, frozen=True):
    """Some of the warps of a fragment."""

    fragment: Fragment  # the fragment
    rows: Rows  # int64[w], their positions in its warp set
    active: npt.NDArray[np.bool_]  # bool[w, 32], lanes that take part, at least one of each

    def take(self, slot: int, dtype: "np.dtype[Any]") -> Value:
        """A register: [w, 32]."""
        value = read_as(self.fragment, slot, dtype)
        if not value.ndim:
            return np.broadcast_to(value, self.active.shape)
        return value.reshape(-1, WARP_LANES)[self.rows]

    def take_first(self, slot: int, dtype: "np.dtype[Any]") -> Value:
        """A register of the first lane of each warp that takes part: [w]."""
        return self.take(slot, dtype)[np.arange(len(self.rows)), self.active.argmax(axis=1)]

    def find_slots(self) -> Rows:
        """int64[w], blocks of the batch."""
        return self.fragment.warps.slots()[self.rows]

    def find_ranks(self) -> Rows:
        """int64[w], numbers of the warps in their blocks."""
        return self.fragment.warps.ids[self.rows] % self.fragment.batch.geometry.warps_per_block
