"""Two versions of a kernel in words: what is said, what counts as worse, and what is not claimed."""

import pytest
from msgspec.structs import replace

from gpa_lsp.diagnosis.analyses.static.code_change import (
    CodeChange,
    CodeFacts,
    compare_code,
    find_code_facts,
    find_scale,
)
from gpa_lsp.diagnosis.analyses.static.kernel_statics import find_kernel_statics
from gpa_lsp.diagnosis.analyses.static.model import BlockOrigin, KnownBlock
from tests.rows.written import write_kernel

LOAD = "B-:R-:W{barrier}:-:S02  LDG.E R{to}, [R4.64]  # k.cu:5"
ADD = "B{barrier}:R-:W-:-:S04  FADD R6, R{to}, R6  # k.cu:5"
CLOSE = """
    B-:R-:W-:-:S04  IADD3 R8, R8, {step}, RZ  # k.cu:4
    B-:R-:W-:-:S04  ISETP.GE.AND P0, PT, R8, R9, PT  # k.cu:4
    B-:R-:W-:-:S04  @!P0 BRA loop  # k.cu:4
    B-:R-:W-:-:S04  EXIT  # k.cu:9
"""


def write_loop(copies: int, *, together: bool, extra: str = "") -> str:
    """A loop that loads and adds, unrolled, with its loads one after the other or issued together."""
    loads = [LOAD.format(barrier=0, to=10 + copy) for copy in range(copies)]
    adds = [ADD.format(barrier=0, to=10 + copy) for copy in range(copies)]
    pairs = zip(loads, adds, strict=True)
    body = [*loads, *adds] if together else [line for pair in pairs for line in pair]
    return "\n".join(["loop:", *body, *([extra] if extra else []), CLOSE.format(step=hex(copies))])


def read(text: str, *, registers: int = 16, spill_bytes: int = 0, lines: tuple[int, ...] = (4,)) -> CodeFacts:
    kernel = write_kernel(text, registers=registers)
    block = KnownBlock(threads=256, origin=BlockOrigin.PROFILE)
    statics = find_kernel_statics(kernel, blocks=(block,), spill_bytes=spill_bytes)
    statics = replace(statics, registers=registers)
    return find_code_facts(kernel.rows, statics, file="k.cu", lines=lines)


ROLLED = read(write_loop(1, together=False))


def change(after: CodeFacts, before: CodeFacts = ROLLED) -> CodeChange:
    return compare_code(before, after)


def test_unrolling_is_told_by_registers_and_loads_in_flight() -> None:
    found = change(read(write_loop(4, together=True), registers=24))
    assert found.short_words.startswith("16 → 24 registers, occupancy unchanged, loads in flight 1 → 4")
    assert "5 → 2.75 instructions per iteration" in found.words
    assert found.details[0] == (
        "The loop has 5 instructions for 1 iteration, and would have 11 instructions for 4 iterations."
    )
    assert found.details[1] == "Memory instructions of the loop: `LDG.E` 1 → 4."
    assert not found.has_losses


def test_the_same_instructions_are_no_difference() -> None:
    assert change(read(write_loop(1, together=False))) == CodeChange(differences=())


def test_spills_are_a_loss_beside_a_gain() -> None:
    found = change(read(write_loop(4, together=True), spill_bytes=16))
    assert found.has_losses and not found.is_worse
    assert found.words.endswith(", but 0 B → 16 B spilled")


def test_fewer_loads_in_flight_alone_are_worse() -> None:
    four = read(write_loop(4, together=True), registers=24)
    after = read(write_loop(4, together=False), registers=24)
    found = change(after, four)
    assert found.is_worse
    assert found.words == "worse: loads in flight 4 → 1"


def test_lower_occupancy_is_a_loss() -> None:
    # Blocks of 256 threads with 128 registers each: two of them on an SM of 8.6, 16 of 48 warps.
    kernel = write_kernel(write_loop(1, together=True), registers=128)
    assert kernel.functions[0].function is not None
    found = change(read(write_loop(2, together=True), registers=128))
    assert "occupancy 100 % → 33 %" in found.words and found.has_losses


def test_double_precision_that_goes_is_said() -> None:
    double = "B-:R-:W-:-:S04  DFMA R20, R20, R22, R20  # k.cu:5"
    found = change(ROLLED, read(write_loop(1, together=False, extra=double)))
    assert found.words == "loop 6 → 5 instructions, double precision 1 → 0"


def test_what_nobody_knows_is_not_claimed() -> None:
    """Loops with four loads may be one iteration or four where no counter tells."""
    unknown = replace(ROLLED, copies=None, code=("other",), accesses={"LDG.E": 1, "STG.E": 1}, instructions=9)
    assert find_scale(unknown, ROLLED) is None
    found = change(ROLLED, unknown)
    assert found.words == "loop 9 → 5 instructions"
    assert not found.has_losses
    assert found.details[0] == "The loop has 9 instructions, and would have 5 instructions for 1 iteration."


@pytest.mark.parametrize(
    ("loads", "words"),
    [
        (8, "loop 33 → 61 instructions for 2 times the iterations"),
        (1, "loop 33 → 61 instructions for 1/4 of the iterations"),
    ],
)
def test_all_accesses_so_many_times_are_so_many_iterations(loads: int, words: str) -> None:
    before = replace(ROLLED, copies=None, instructions=33, accesses={"LDG.E": 4})
    after = replace(ROLLED, copies=None, code=(), instructions=61, accesses={"LDG.E": loads})
    assert words in change(after, before).words


def test_a_loop_that_is_written_out_is_gone() -> None:
    straight = "B-:R-:W0:-:S02  LDG.E R2, [R4.64]  # k.cu:5\n B0:R-:W-:-:S04  EXIT  # k.cu:9\n"
    assert "the loop is gone, all its iterations are written out" in change(read(straight)).words


def test_a_loop_is_found_by_its_own_line_by_a_line_in_it_and_by_the_next_one() -> None:
    text = write_loop(1, together=False)
    assert all(read(text, lines=lines).is_loop for lines in [(4,), (5,), (1, 5)])
    outside = read(text, lines=(9,))
    assert not outside.is_loop and outside.instructions == 6
