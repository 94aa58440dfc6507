"""Asking in SASS documents where values come from and go to."""

from typing import Any

import pytest
from msgspec.structs import replace

from gpa_lsp.editor.sass.document import build_document
from gpa_lsp.editor.sass.jumps import find_definition, find_highlights, find_references, list_jumps
from gpa_lsp.editor.sass.library import SassView
from tests.editor.sass.cursors import put_cursor, read_places
from tests.editor.sass.documents import LOOP, URI, open_document, show_report, write_document, write_report

CALLS = """
    MOV R4, R7
    MOV R8, 0x3f800000
    CALL.REL.NOINC `($divide)
    FADD R5, R4, R8
    BSSY B0, 0x60
    @P0 BRA 0x60
    LDG.E.128 R12, [R2.64]
    DFMA R20, R12, R14, R20
    P2R R9, PR, RZ, 0x3
    CALL.REL.NOINC `(helper)
    STG.E.64 [R2.64+0x8], R20
    EXIT
$divide:
    MUFU.RCP R4, R4
    RET.REL.NODEC R10 0x0
[helper]
    IADD3 R4, R4, 0x1, RZ
    RET.REL.NODEC R20 0x0
"""
"""Calls, wide registers, and what the text does not name."""


def open_text(text: str, **options: Any) -> SassView:
    return open_document(write_document(text), **options)


@pytest.fixture(scope="module")
def loop() -> SassView:
    return open_text(LOOP)


@pytest.fixture(scope="module")
def calls() -> SassView:
    return open_text(CALLS)


def define(view: SassView, marked: str) -> list[str] | None:
    found = find_definition(view, put_cursor(view, marked))
    if found is None:
        return None
    assert {location.uri for location in found} == {URI}
    return read_places(view, [location.range for location in found])


def refer(view: SassView, marked: str, *, declarations: bool = True) -> list[str] | None:
    found = find_references(view, put_cursor(view, marked), with_declarations=declarations)
    return None if found is None else read_places(view, [location.range for location in found])


def highlight(view: SassView, marked: str) -> list[str] | None:
    found = find_highlights(view, put_cursor(view, marked))
    if found is None:
        return None
    places = read_places(view, [one.range for one in found])
    return [f"{one.kind.name.capitalize()} {place}" for one, place in zip(found, places, strict=True)]


def test_an_operand_is_defined_where_it_was_written(loop: SassView) -> None:
    assert define(loop, "FFMA R0, ^R2") == ["0020 R2"]
    assert define(loop, "FFMA R0, R2^, R3") == ["0020 R2"]
    assert define(loop, "R3, ^R0") == ["0000 R0", "0030 R0"]
    assert define(loop, "@^P0 BRA") == ["0040 P0"]
    assert define(loop, "LDG.E ^R2") == ["0020 R2"]
    assert define(loop, "LDG.E R2, [R^4.64]") is None


def test_a_branch_goes_to_its_target(loop: SassView, calls: SassView) -> None:
    assert define(loop, "BRA 0x^20") == ["0020 LDG.E R2, [R4.64]"]
    assert define(calls, "BSSY B0, 0x^60") == ["0060 LDG.E.128 R12, [R2.64]"]
    assert define(calls, "CALL.REL.NOINC 0x^c0") == ["00c0 MUFU.RCP R4, R4"]
    assert define(calls, "CALL.REL.NOINC `(hel^per)") == ["0000 IADD3 R4, R4, 0x1, RZ"]


def test_elsewhere_the_definition_is_what_the_stall_waits_for(loop: SassView) -> None:
    assert define(loop, "F^FMA") == ["0020 LDG.E R2, [R4.64]"]
    assert define(loop, "waits ^SB2") == ["0020 LDG.E R2, [R4.64]"]
    assert define(loop, "M^OV") is None
    assert define(loop, "// kern^el ·") is None


def test_values_are_followed_through_calls_and_into_wide_registers(calls: SassView) -> None:
    assert define(calls, "FADD R5, R^4") == ["00c0 R4"]
    assert define(calls, "R4, ^R8") == ["0010 R8"]
    assert define(calls, "DFMA R20, R12, ^R14") == ["0060 R12"]
    assert define(calls, "P2R R9, P^R") is None
    assert define(calls, "STG.E.64 [R2.64+0x8], ^R20") == ["0070 R20"]
    assert refer(calls, "LDG.E.128 R^12") == ["0060 R12", "0070 R12", "0070 R14"]


def test_what_only_a_call_can_have_written_leads_to_the_call() -> None:
    view = open_text("CALL.REL.NOINC `(helper)\nFADD R5, R4, R4\nEXIT\n[helper]\nRET.REL.NODEC R20 0x0")
    assert define(view, "FADD R5, ^R4") == ["0000 CALL.REL.NOINC `(helper)"]


def test_references_are_the_whole_life_of_a_value(loop: SassView) -> None:
    life = ["0000 R0", "0030 R0", "0030 R0", "0060 R0"]
    assert [refer(loop, marked) for marked in ("MOV ^R0", "FFMA ^R0", "R3, ^R0", "[R4.64], ^R0")] == [life] * 4
    assert refer(loop, "MOV ^R0", declarations=False) == ["0030 R0", "0060 R0"]
    assert refer(loop, "EX^IT") is None


def test_references_of_a_target_are_those_who_go_there(loop: SassView) -> None:
    jump, target = "0050 @P0 BRA 0x20", "0020 LDG.E R2, [R4.64]"
    assert refer(loop, "BRA 0x^20") == [target, jump] == refer(loop, "LD^G")
    assert refer(loop, "LD^G", declarations=False) == [jump]


def test_highlights_tell_writes_from_reads(loop: SassView) -> None:
    assert highlight(loop, "MOV ^R0") == ["Write 0000 R0", "Write 0030 R0", "Read 0030 R0", "Read 0060 R0"]
    assert highlight(loop, "@P^0 BRA") == ["Write 0040 P0", "Read 0050 @P0"]
    assert highlight(loop, "BRA ^0x20") == ["Text 0020 LDG.E R2, [R4.64]", "Text 0050 @P0 BRA 0x20"]
    assert highlight(loop, "// k.cu:5 ^|") is None


def test_beside_the_operands_partners_behind_scoreboards_are_highlighted(loop: SassView) -> None:
    assert highlight(loop, "FF^MA") == ["Write 0020 LDG.E R2, [R4.64]", "Text 0030 FFMA R0, R2, R3, R0"]
    assert highlight(loop, "sets S^B0 ·") == ["Text 0010 S2R R3, SR_TID.X", "Read 0020 LDG.E R2, [R4.64]"]
    assert highlight(loop, "ISE^TP") is None


@pytest.mark.parametrize("marked", ["LDG.E R^2", "L^DG", "BRA 0x^20", "waits ^SB2", "^// kernel"])
def test_without_code_answers_are_poor_but_answers(marked: str) -> None:
    report = replace(write_report(LOOP), code=None, blame=None)
    view = open_document(build_document(URI, show_report(report)))
    own = ["0020 R2"] if marked == "LDG.E R^2" else None
    assert (define(view, marked), refer(view, marked)) == (own, own)
    assert highlight(view, marked) == (["Write 0020 R2"] if own else None)


def test_columns_are_counted_as_the_client_counts_them() -> None:
    for encoding in ("utf-8", "utf-16", "utf-32"):
        view = open_text(LOOP, encoding=encoding)
        assert define(view, "FFMA R0, ^R2") == ["0020 R2"]
        assert highlight(view, "MOV ^R0")[1] == "Write 0030 R0"  # type: ignore[index]


def test_jumps_lead_along_stalls(loop: SassView) -> None:
    (cause,) = list_jumps(loop, 3, is_cause=True)
    assert read_places(loop, [cause.location.range]) == ["0020 LDG.E R2, [R4.64]"]
    assert (cause.samples, cause.ratio, cause.sass) == (80.0, 0.8, cause.location)
    assert cause.text == "/*0020*/ LDG · 80 % · 80 samples of long_scoreboard through R2"
    assert [read_places(loop, [jump.location.range]) for jump in list_jumps(loop, 2, is_cause=False)] == [
        ["0030 FFMA R0, R2, R3, R0"]
    ]
    assert list_jumps(loop, 7, is_cause=True) == []


def test_many_equal_causes_are_no_choice() -> None:
    loads = "\n".join(f"B-:R-:W2:-:S02 LDG.E R{row}, [R90.64]" for row in range(30))
    view = open_text(f"{loads}\nB2:R-:W-:-:S02 STG.E [R90.64], R0  # - | long_scoreboard=60\nEXIT")
    assert len(list_jumps(view, 30, is_cause=True)) == 20
    assert define(view, "S^TG") == ["0000 LDG.E R0, [R90.64]"]
