"""Instrumented PTX: what it keeps of the original, what ptxas says, and what is told where there is no room."""

import re

import numpy as np
import pytest

from gpa_lsp.code.binary.cubin import read_cubin
from gpa_lsp.code.binary.line_table import read_line_table
from gpa_lsp.code.ptx.model import PtxModule
from gpa_lsp.code.ptx.parse import parse_ptx
from gpa_lsp.execution.compiler.ptx_files import assemble_ptx
from gpa_lsp.execution.emulator.emulate import emulate, find_kernel
from gpa_lsp.execution.emulator.engine.functions import _RECORDING
from gpa_lsp.execution.instrumentation.code import PLACES, ROWS, STATE, VARIABLES, SiteKind, StateWord
from gpa_lsp.execution.instrumentation.decode import TracedLaunch, Written, decode_records
from gpa_lsp.execution.instrumentation.instrument import OwnBuffers, instrument
from gpa_lsp.foundation.errors import InputError
from tests.conftest import IS_NIGHTLY
from tests.emulator.kernels.compiling import SOURCES, compile_ptx, read_source
from tests.emulator.kernels.running import BUDGET, Case, load_module
from tests.emulator.kernels.test_truth import FIXTURES, OWN
from tests.instrumentation.comparing import emulate_instrumented, emulate_traced, list_own

_ARCHITECTURES = (75, 80, 90, 120)
_ASSEMBLED = (
    "atomics_returned",
    "byte_strings",
    "cooperative_tiles",
    "recursive_calls",
    "reduce_shuffle",
    "struct_returns",
    "switch_table",
)
"""Sources whose PTX has the forms that fixtures lack: generic addresses, calls, tables, predicates before accesses."""


def _find_case(name: str, architecture: int = 80) -> Case:
    found = (case for case in (*OWN, *FIXTURES) if name in str(case) and case.architecture == architecture)
    return next(found)


def _instrument(case: Case) -> tuple[PtxModule, str]:
    module = load_module(case.source, case.architecture, *case.flags)
    return module, instrument(module, find_kernel(module, case.launch.kernel).name, entries=True).text


@pytest.mark.parametrize(
    "name",
    ["inline_chain/inline_chain-original", "device_calls/device_calls-original", "tensor_core/tensor_core-improved"],
)
def test_lines_survive_in_ptx_and_cubin(name: str) -> None:
    case = _find_case(name)
    module, text = _instrument(case)
    again = parse_ptx(text, name="instrumented")
    for function in module.functions.values():
        kept = [
            one
            for one in again.functions[function.name].instructions
            if "gpa_" not in one.text and "%gpa" not in one.text
        ]
        own = [(one.text, one.chain, one.column) for one in function.instructions]
        again_own = [(one.text, one.chain, one.column) for one in kept]
        assert [one for one in again_own if one in set(own)] == own
    images = [assemble_ptx(one, "sm_80") for one in (module.text, text)]
    if images[0][0] is None:
        pytest.skip(images[0][1][0])
    image = images[1][0]
    table = read_line_table(read_cubin(image), find_kernel(module, case.launch.kernel).name)
    written = instrument(module, find_kernel(module, case.launch.kernel).name, entries=True)
    accessed = [one.instruction for one in written.sites if one.instruction is not None]
    assert {one.chain for one in accessed if one in module.functions[written.kernel].instructions} <= set(table.chains)


def _choose_fixtures() -> list[tuple[int, Case]]:
    """Each fixture kernel for one of the architectures, in turn; in a nightly run for all of them."""
    cases = list({(case.source, case.launch.kernel.partition("<")[0]): case for case in FIXTURES}.values())
    return [
        (architecture, case)
        for place, case in enumerate(cases)
        for number, architecture in enumerate(_ARCHITECTURES)
        if IS_NIGHTLY or place % len(_ARCHITECTURES) == number
    ]


@pytest.mark.parametrize(("architecture", "case"), _choose_fixtures(), ids=str)
def test_ptxas_takes_fixtures(architecture: int, case: Case) -> None:
    module = load_module(case.source, architecture, *case.flags)
    text = instrument(module, find_kernel(module, case.launch.kernel).name, entries=True).text
    image, notes = assemble_ptx(text, f"sm_{architecture}")
    if image is None and "there is no ptxas" in notes[0]:
        pytest.skip(notes[0])
    assert image is not None, notes


@pytest.mark.parametrize("name", _ASSEMBLED)
def test_ptxas_takes_what_fixtures_lack(name: str) -> None:
    source = read_source(SOURCES / f"{name}.cu")
    module = parse_ptx(compile_ptx(source.path, 80, *source.flags, "-G"), name=name)
    for kernel in module.entries:
        image, notes = assemble_ptx(instrument(module, kernel.name, entries=True).text, "sm_80")
        if image is None and "there is no ptxas" in notes[0]:
            pytest.skip(notes[0])
        assert image is not None, notes


def test_what_finds_no_room_is_counted_and_changes_no_result() -> None:
    case = _find_case("shared_reduction-original")
    module = load_module(case.source, case.architecture, *case.flags)
    expected = emulate_traced(module, case.launch, BUDGET)
    whole = len(expected.trace.accesses) + len(expected.trace.branches) + len(expected.trace.entries)
    emulation, trace = emulate_instrumented(module, case.launch, BUDGET, expected.trace, words=1000)
    assert not trace.is_complete
    kept = len(trace.accesses) + len(trace.branches) + len(trace.entries)
    dropped = int(emulation.arrays[STATE].view(np.uint64)[StateWord.DROPPED])
    assert 0 < kept < whole and kept + dropped == whole
    assert list_own(emulation) == list_own(expected)


def test_only_the_blocks_that_are_asked_for_are_recorded() -> None:
    case = _find_case("shared_reduction-original")
    module = load_module(case.source, case.architecture, *case.flags)
    expected = emulate_traced(module, case.launch, BUDGET)
    buffers = OwnBuffers(words=1 << 20, block_mask=3, block_bits=(0b0110,))
    written = instrument(module, find_kernel(module, case.launch.kernel).name, entries=True, buffers=buffers)
    found = emulate(parse_ptx(written.text, name="instrumented"), case.launch, budget=BUDGET, check_races=False)
    reserved = int(found.arrays[STATE].view(np.uint64)[StateWord.NEXT])
    words = found.arrays[ROWS].view(np.uint64)[:reserved]
    launch = TracedLaunch(
        grid=case.launch.grid,
        block_threads=case.launch.block,
        buffers=expected.trace.buffers,
        traced_blocks=np.array([1, 2], np.uint32),
        origin="instrumented",
    )
    state = Written(words=words, reserved_words=reserved, dropped=0, places=found.arrays[PLACES].view(np.uint64))
    pieces = list(decode_records(written, state, launch, words_at_once=1))
    assert [piece.traced_blocks.tolist() for piece in pieces] == [[1], [2]]
    for piece in pieces:
        (block,) = piece.traced_blocks.tolist()
        assert piece.is_complete
        assert set(piece.accesses.block.tolist()) == {block}
        assert len(piece.accesses) == int((expected.trace.accesses.block == block).sum())


def test_words_that_were_reserved_and_not_written_are_noticed() -> None:
    case = _find_case("shared_reduction-original")
    module = load_module(case.source, case.architecture, *case.flags)
    written = instrument(module, find_kernel(module, case.launch.kernel).name)
    launch = TracedLaunch(
        grid=case.launch.grid,
        block_threads=case.launch.block,
        buffers=(),
        traced_blocks=np.arange(4, dtype=np.uint32),
        origin="instrumented",
    )
    nothing = Written(words=np.zeros(64, np.uint64), reserved_words=64, dropped=0, places=np.zeros(0, np.uint64))
    pieces = list(decode_records(written, nothing, launch))
    assert not any(piece.is_complete for piece in pieces)
    assert sum(len(piece.accesses) for piece in pieces) == 0


def test_a_module_of_our_names_is_refused() -> None:
    text = ".version 8.0 .target sm_80 .address_size 64 .global .u64 gpa_lsp_state[7]; .visible .entry k() { ret; }"
    with pytest.raises(InputError, match="gpa_lsp_state already"):
        instrument(parse_ptx(text, name="k.ptx"), "k")


def test_the_emulator_knows_our_variables_by_their_names() -> None:
    assert all(name.startswith(_RECORDING) for name in VARIABLES)


def test_old_ptx_is_raised_to_the_first_version_that_has_what_records() -> None:
    text = ".version 5.0 .target sm_60 .address_size 64\n.visible .entry k() { .reg .pred %p<2>; @%p1 bra A; A: ret; }"
    written = instrument(parse_ptx(text, name="k.ptx"), "k")
    assert re.match(r"\.version 6\.2 ", written.text)
    assert [site.kind for site in written.sites] == [SiteKind.BRANCH]


def test_what_is_not_recorded_is_told() -> None:
    case = _find_case("texture_fetch-original")
    module = load_module(case.source, case.architecture, *case.flags)
    assert instrument(module, find_kernel(module, case.launch.kernel).name).unrecorded == ("tex.1d.v4.f32.s32",)
