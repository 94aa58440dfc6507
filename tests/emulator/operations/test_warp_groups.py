"""Products of warp groups: which forms there are, and where matrices stand that descriptors tell of."""

import numpy as np
import pytest

from gpa_lsp.code.ptx.instructions import read_opcode
from gpa_lsp.code.ptx.model import Immediate, Operand, PtxInstruction, Register, Vector
from gpa_lsp.execution.emulator.semantics.matrix_products import read_group_product
from tests.emulator.operations.evaluating import evaluate_expression

_LEFT = Vector((Register(1),) * 4)
_DESCRIPTOR = Register(2)


def _read(name: str, left: Operand, *choices: int) -> PtxInstruction:
    form = read_opcode(f"wgmma.mma_async.sync.aligned.{name}")
    return PtxInstruction(
        index=0,
        opcode=form.opcode,
        suffixes=form.suffixes,
        types=form.types,
        destinations=(Vector((Register(0),)),),
        sources=(left, _DESCRIPTOR, Register(3), *(Immediate(choice) for choice in choices)),
        guard=None,
        text=name,
        text_line=1,
        chain=None,
    )


@pytest.mark.parametrize(
    ("name", "left", "choices", "registers"),
    [
        ("m64n8k16.f32.f16.f16", _LEFT, (1, -1, 1), 4),
        ("m64n72k16.f16.f16.f16", _DESCRIPTOR, (-1, 1, 1, 0), 18),
        ("m64n120k16.f32.bf16.bf16", _LEFT, (-1, -1, 0), 60),
        ("m64n16k8.f32.tf32.tf32", _DESCRIPTOR, (-1, -1), 8),
        ("m64n8k32.f16.e4m3.e5m2", _DESCRIPTOR, (-1, 1), 2),
        ("m64n8k32.s32.s8.u8.satfinite", _LEFT, (), 4),
        ("m64n256k256.s32.b1.b1.and.popc", _DESCRIPTOR, (), 128),
    ],
)
def test_forms_that_exist(name: str, left: Operand, choices: tuple[int, ...], registers: int) -> None:
    product = read_group_product(_read(name, left, *choices))
    assert product is not None
    assert product.result_registers == registers
    assert product.is_negated == (choices[:2] in ((1, -1), (-1, 1)))
    assert product.left_is_vector == isinstance(left, Vector)


@pytest.mark.parametrize(
    ("name", "left", "choices"),
    [
        ("sp.m64n8k32.f32.f16.f16", _LEFT, (1, 1, 0)),
        ("m64n12k16.f32.f16.f16", _LEFT, (1, 1, 0)),
        ("m64n264k16.f32.f16.f16", _LEFT, (1, 1, 0)),
        ("m64n40k32.s32.s8.s8", _LEFT, ()),
        ("m64n8k8.f32.f16.f16", _LEFT, (1, 1, 0)),
        ("m64n8k16.f16.bf16.bf16", _LEFT, (1, 1, 0)),
        ("m64n8k16.f32.f16.bf16", _LEFT, (1, 1, 0)),
        ("m64n8k32.f32.e4m3.f16", _LEFT, (1, 1)),
        ("m64n8k16.f32.f16.f16", _LEFT, (2, 1, 0)),
        ("m64n8k16.f32.f16.f16", _LEFT, (1, 1, 0, 0)),
        ("m64n8k16.f32.f16.f16", _DESCRIPTOR, (1, 1, 0, 2)),
        ("m64n8k32.f32.e4m3.e4m3", _DESCRIPTOR, (1, 1, 0, 0)),
        ("m64n8k16.f32.f16.f16", Vector((Register(1),) * 2), (1, 1, 0)),
        ("m64n8k256.s32.b1.b1.xor.popc", _LEFT, ()),
        ("m64n8k16.f32.f16", _LEFT, (1, 1, 0)),
    ],
)
def test_forms_that_do_not_exist_and_sparse_ones_are_none(name: str, left: Operand, choices: tuple[int, ...]) -> None:
    assert read_group_product(_read(name, left, *choices)) is None


def _describe(mode: int, leading_bytes: int, stride_bytes: int, start: int = 0) -> int:
    return start >> 4 | leading_bytes >> 4 << 16 | stride_bytes >> 4 << 32 | mode << 62


@pytest.mark.parametrize(
    ("descriptor", "across", "along", "element_bytes"),
    [
        (_describe(0, 64 * 4, 32 * 4), ((8, 4), (2, 32)), ((4, 1), (2, 64)), 4),
        (_describe(3, 16, 64 * 4), ((8, 8), (2, 64)), ((4, 1), (2, 4)), 4),
        (_describe(0, 128 * 2, 64 * 2), ((8, 1), (1, 8), (2, 64)), ((8, 8), (2, 128)), 2),
        (_describe(3, 128 * 2, 256 * 2), ((8, 1), (2, 8), (2, 128)), ((8, 16), (2, 256)), 2),
        (_describe(2, 256 * 2, 512 * 2), ((8, 1), (4, 8), (2, 256)), ((8, 32), (2, 512)), 2),
    ],
)
def test_the_examples_of_the_manual(
    descriptor: int, across: tuple[tuple[int, int], ...], along: tuple[tuple[int, int], ...], element_bytes: int
) -> None:
    # Their layouts: counts and distances in elements, innermost first, of lines (rows of A) and along the depth; turned are those of bfloat16.
    is_turned = element_bytes == 2
    places = (np.add.outer(_spread(across), _spread(along)) * element_bytes).astype(np.int64)
    bits = {0: 0, 3: 1, 2: 2}[descriptor >> 62]
    places ^= (places >> 7 & (1 << bits) - 1) << 4
    lines = len(places)
    found = _find_units(descriptor, lines, is_turned=is_turned)
    expected = places[::8, :] if is_turned else places[:, :: 16 // element_bytes]
    assert found.reshape(expected.shape).tolist() == expected.tolist()


def _find_units(descriptor: int, lines: int, *, is_turned: bool) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    units = np.arange(2 * lines)
    found = evaluate_expression(f"find_unit(a(u64), b(u64), {int(is_turned)})", np.full(len(units), descriptor), units)
    return found.astype(np.int64)


def _spread(levels: tuple[tuple[int, int], ...]) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    places = np.zeros(1, np.int64)
    for count, distance in levels:
        places = np.add.outer(np.arange(count) * distance, places).ravel()
    return places


def test_swizzles_follow_addresses_and_not_distances_from_the_start() -> None:
    whole, later = (_find_units(_describe(1, 16, 1024, start), 8, is_turned=False) for start in (0, 64))
    assert whole.reshape(8, 2)[:3].tolist() == [[0, 16], [144, 128], [288, 304]]
    assert (later == whole ^ 64).all()


def test_base_offsets_count_where_there_is_a_swizzle() -> None:
    offset = 1 << 49
    descriptors = [_describe(mode, 16, 1024) | offset for mode in range(4)] + [_describe(1, 16, 1024)]
    fine = evaluate_expression("u64(have_no_offset(a(u64)))", descriptors)
    assert fine.tolist() == [1, 0, 0, 0, 1]
