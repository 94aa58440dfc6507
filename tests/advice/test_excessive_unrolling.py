"""Loops of so many copies that they no longer fit the instruction caches."""

from typing import Any

import pytest

from gpa_lsp.diagnosis.advice.code_size import find_instruction_caches
from gpa_lsp.diagnosis.advice.matches import EliminationMatch
from gpa_lsp.diagnosis.advice.model import Silence, SilenceStage
from gpa_lsp.diagnosis.advice.optimizers.excessive_unrolling import OPTIMIZER
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.gpu.arch.lookup import find_architecture
from gpa_lsp.kernel.scopes import ScopeKind
from tests.advice.blamed_by_hand import forget_code, write_subject

COPY = """
        LDS R2, [R20+{offset:#x}]      # k.cu:6 | selected=1 no_instructions=2/2
        FFMA R{sum}, R2, R3, R{sum}    # k.cu:7 | selected=1
"""
TAIL = """
        IADD3 R5, R5, {copies:#x}, RZ                # k.cu:5 | selected=1
        ISETP.NE.AND P0, PT, R5, 0x10000, PT         # k.cu:5 | wait=4
        @P0 BRA loop                                 # k.cu:5 | no_instructions=50 wait=12
        EXIT                                         # k.cu:9
"""


def write_loop(copies: int, text: str = COPY, **kernel: Any) -> Subject:
    body = "".join(text.format(offset=4 * number, sum=30 + number % 4) for number in range(copies))
    return write_subject(f"loop:\n{body}{TAIL.format(copies=copies)}", {}, **kernel)


def test_a_loop_of_copies_larger_than_the_cache_waits_for_instructions() -> None:
    # 1,024 copies of two instructions and three more, of 16 bytes: 32 KiB and some, where the cache holds 16.
    subject = write_loop(1024)
    found = OPTIMIZER.match(subject)
    assert isinstance(found, EliminationMatch)
    (region,) = found.regions
    assert region.samples == 2 * 1024 + 50
    assert (region.scope.kind, region.scope.line) == (ScopeKind.LOOP, 5)
    assert all(hotspot.reason == "no_instructions" for hotspot in region.hotspots)
    assert "The loop at line 5 of k.cu is 32.0 KiB of code at unroll factor 1,024" in found.hint
    # 511 copies fit; the next power of two below is 256.
    assert "`#pragma unroll 256`" in found.hint
    assert "16 KiB (measured)" in found.reasons[0]


def test_the_pragma_is_for_those_who_have_it() -> None:
    subject = write_loop(1024, COPY.replace("k.cu", "k.f90"))
    found = OPTIMIZER.match(subject)
    assert isinstance(found, EliminationMatch)
    assert "#pragma" not in found.hint.replace("k.cu", "")


def test_a_loop_that_fits_waits_for_other_reasons() -> None:
    silence = OPTIMIZER.match(write_loop(64))
    assert isinstance(silence, Silence)
    assert silence.stage is SilenceStage.NOT_MATCHED
    assert silence.message == (
        "the largest loop stalled on instruction fetch is 2.05 KiB of code, and the L0 instruction cache holds 16 KiB"
    )


def test_a_large_loop_that_is_no_row_of_copies_stays() -> None:
    lines = "".join(
        f"        IADD3 R{2 + n % 200}, R{3 + n % 199}, {n + 1:#x}, RZ  # k.cu:{10 + n} | no_instructions=1\n"
        for n in range(1300)
    )
    silence = OPTIMIZER.match(write_subject(f"loop:\n{lines}{TAIL.format(copies=1)}", {}))
    assert isinstance(silence, Silence)
    assert "is not unrolled" in silence.message


def test_what_the_loop_calls_takes_room_too() -> None:
    body = "".join(COPY.format(offset=4 * number, sum=30 + number % 4) for number in range(480))
    called = "\n".join("        FADD R9, R9, R8  # k.cu:20" for _ in range(200))
    text = f"loop:\n{body}        CALL.REL.NOINC $k$f   # k.cu:7\n{TAIL.format(copies=480)}    $k$f:\n{called}\n        RET.REL.NODEC R20 0x0"
    alone = OPTIMIZER.match(write_loop(480))
    assert isinstance(alone, Silence)
    together = OPTIMIZER.match(write_subject(text, {}))
    assert isinstance(together, EliminationMatch)


def test_silences() -> None:
    calm = OPTIMIZER.match(write_subject("FADD R2, R2, R3  # k.cu:3 | wait=4\nEXIT", {}))
    assert isinstance(calm, Silence)
    assert calm.message == "no warp is stalled on instruction fetch"
    straight = OPTIMIZER.match(write_subject("FADD R2, R2, R3  # k.cu:3 | no_instructions=4\nEXIT", {}))
    assert isinstance(straight, Silence)
    assert "in no loop" in straight.message
    blind = OPTIMIZER.match(forget_code(write_loop(64)))
    assert isinstance(blind, Silence)
    assert blind.stage is SilenceStage.NO_CODE


@pytest.mark.parametrize(
    ("capability", "first_kib"), [((7, 0), 12), ((7, 5), 16), ((8, 6), 16), ((8, 9), 32), ((9, 0), 32)]
)
def test_cache_sizes(capability: tuple[int, int], first_kib: int) -> None:
    caches = find_instruction_caches(find_architecture(capability))
    assert caches.first_bytes == first_kib << 10
    assert caches.is_measured == (capability in ((7, 0), (7, 5), (8, 6)))
