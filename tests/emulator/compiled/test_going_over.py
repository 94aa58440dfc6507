"""Going over to what was written in C changes nothing, wherever it happens; and where there is nothing to go over to, the interpreter goes on."""

import random
import time
from collections.abc import Callable

import numpy as np
import pytest

from gpa_lsp.execution.emulator import emulate
from gpa_lsp.execution.emulator.compiled import scheduler, translated
from gpa_lsp.execution.emulator.compiled.scheduler import CompiledScheduler
from gpa_lsp.execution.emulator.compiled.translated import Translations
from gpa_lsp.execution.emulator.model import Budget, Emulation
from gpa_lsp.foundation.machine_code import VARIABLE
from tests.emulator.compiled.comparing import by_numpy, list_facts
from tests.emulator.engine.running import GLOBAL_THREAD, SMALL, Array, run_text, zeros
from tests.emulator.engine.test_random_control_flow import ProgramMaker
from tests.patience import LIMIT_S

_POINTS = 12
_THREADS = 96
_LOOP = f"""{GLOBAL_THREAD} ld.global.u32 %r1, [%d31]; mov.u32 %r2, 0; mov.u32 %r3, 0; mov.u64 %d20, %d31; setp.ge.u32 %p1, %r52, 40;
AGAIN: mad.lo.u32 %r1, %r1, 1664525, 1013904223; add.u32 %r2, %r2, %r1; st.global.u32 [%d32], %r2; @%p1 add.u32 %r2, %r2, 3;
BODY
add.u32 %r3, %r3, 1; setp.lt.u32 %p0, %r3, 50; @%p0 bra AGAIN;
st.global.u32 [%d32], %r2;"""
_BODIES = {
    "loop": "",
    "region": "setp.eq.u32 %p2, %r3, 17; @%p2 mov.u64 %d20, %d32; ld.global.u32 %r4, [%d20]; add.u32 %r2, %r2, %r4;",
    "fault": """setp.eq.u32 %p2, %r3, 23; setp.eq.and.u32 %p2, %r52, 70, %p2; @%p2 add.u64 %d20, %d20, 4096; ld.global.u32 %r4, [%d20];
    add.u32 %r2, %r2, %r4;""",
    "division": "sub.u32 %r5, 29, %r3; rem.u32 %r4, %r1, %r5; add.u32 %r2, %r2, %r4;",
    "shared": """shl.b32 %r6, %r52, 2; st.shared.u32 [%r6], %r2; bar.sync 0; xor.b32 %r7, %r6, 128; and.b32 %r7, %r7, 255; ld.shared.u32 %r4, [%r7];
    bar.sync 0; add.u32 %r2, %r2, %r4;""",
}
"""What lanes do in each round."""


@pytest.fixture(autouse=True)
def translations(monkeypatch: pytest.MonkeyPatch) -> Translations:
    """Forget all translations."""
    translations = Translations()
    monkeypatch.setattr(emulate, "TRANSLATIONS", translations)
    monkeypatch.setattr(translated, "_OPERATIONS_A_SECOND", 1 << 30)
    return translations


def run_loop(body: str, *, budget: Budget = SMALL) -> Emulation:
    """Fifty rounds by three warps of two blocks."""
    arrays: dict[str, Array] = {"in": np.arange(2 * _THREADS, dtype=np.uint32), "out": zeros(8 * _THREADS)}
    text = _LOOP.replace("BODY", body)
    return run_text(text, arrays, block=_THREADS, grid=2, shared_bytes=4 * _THREADS, budget=budget)


def translate(run: Callable[[], Emulation], translations: Translations, monkeypatch: pytest.MonkeyPatch) -> Emulation:
    """Results of numpy, once a translation has been made."""
    with by_numpy():
        expected = run()
    monkeypatch.setattr(translated, "HOT_WARP_INSTRUCTIONS", expected.warp_instructions)
    run()
    assert translations.wait() == 1
    return expected


def check_points(run: Callable[[], Emulation], translations: Translations, monkeypatch: pytest.MonkeyPatch) -> None:
    """Go over at one segment after the other."""
    expected = list_facts(translate(run, translations, monkeypatch))
    monkeypatch.setattr(scheduler, "_QUANTUM", 0)  # the core stops behind each segment
    take, asked, late = CompiledScheduler._take_pieces, 0, 1 << 62

    def take_late(self: CompiledScheduler, *, is_at_end: bool = False) -> None:
        nonlocal asked
        asked += 1
        if asked > late:
            take(self, is_at_end=is_at_end)

    monkeypatch.setattr(CompiledScheduler, "_take_pieces", take_late)
    assert list_facts(run()) == expected
    points = asked
    assert points > 20
    for late in range(0, points, max(1, points // _POINTS)):
        asked = 0
        assert list_facts(run()) == expected, late
        assert asked == points, late


@pytest.mark.parametrize("name", _BODIES)
def test_it_does_not_matter_when_the_translation_comes(
    name: str, translations: Translations, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_points(lambda: run_loop(_BODIES[name]), translations, monkeypatch)


def test_a_limit_of_instructions_holds_wherever_the_translation_comes(
    translations: Translations, monkeypatch: pytest.MonkeyPatch
) -> None:
    budget = Budget(seconds=LIMIT_S, memory_bytes=256 << 20, warp_instructions=1111)
    check_points(lambda: run_loop("", budget=budget), translations, monkeypatch)


@pytest.mark.parametrize("seed", (3, 5))
def test_programs_that_jump_anywhere_go_over_anywhere(
    seed: int, translations: Translations, monkeypatch: pytest.MonkeyPatch
) -> None:
    body, given = ProgramMaker(seed).make(), np.array(random.Random(seed).choices(range(64), k=96), np.uint32)
    arrays: dict[str, Array] = {"in": given, "out": zeros(4 * 96)}
    check_points(lambda: run_text(body, arrays, grid=2, block=48), translations, monkeypatch)


def test_time_runs_out_in_what_was_translated(translations: Translations, monkeypatch: pytest.MonkeyPatch) -> None:
    endless = "@%p0 mov.u32 %r3, 0; mov.u32 %r4, %r3;"
    budget = Budget(seconds=2.0, memory_bytes=256 << 20)
    monkeypatch.setattr(translated, "HOT_WARP_INSTRUCTIONS", 1 << 20)
    run_loop(endless, budget=budget)
    assert translations.wait() == 1
    begin = time.monotonic()
    faults = run_loop(endless, budget=budget).faults
    assert time.monotonic() - begin < LIMIT_S
    assert [fault.kind.name for fault in faults] == ["TIME_BUDGET"]


def test_stores_of_some_lanes_stay_behind_those_of_all(
    translations: Translations, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = """mov.u32 %r1, %tid.x; and.b32 %r2, %r1, 31; mul.wide.u32 %d20, %r2, 4; add.u64 %d21, %d0, %d20; setp.lt.u32 %p0, %r1, 32;
    st.global.u32 [%d21], %r1; @%p0 st.global.u32 [%d21], 7;"""
    monkeypatch.setattr(translated, "HOT_WARP_INSTRUCTIONS", 1)
    monkeypatch.setattr(emulate, "_BEST_CORE_LANES", 64)  # where they store is known behind the first block
    for expected in (0, 1):
        found = run_text(body, {"out": zeros(32)}, block=64, grid=2).arrays["out"]
        assert found.view(np.uint32).tolist() == [7] * 32
        assert translations.wait() == 1, expected


def test_what_refuses_too_often_is_asked_again_in_the_next_launch(
    translations: Translations, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = _BODIES["region"].replace("%p2, %r3, 17", "%p2, %r52, 40")  # one warp reads elsewhere than the others
    monkeypatch.setattr(translated, "HOT_WARP_INSTRUCTIONS", 1)
    text = _LOOP.replace("BODY", body).replace("%r3, 50", "%r3, 20000")
    arrays: dict[str, Array] = {"in": np.arange(_THREADS, dtype=np.uint32), "out": zeros(4 * _THREADS)}
    first = list_facts(run_text(text, arrays, block=_THREADS))
    assert translations.wait() == 1
    (translation,) = translations._known.values()
    assert translation.table is not None
    functions = translation.table.functions.copy()
    assert list_facts(run_text(text, arrays, block=_THREADS)) == first
    assert functions.any() and translation.table.functions.tolist() == functions.tolist()


def test_what_cannot_be_translated_goes_on_operation_by_operation(
    translations: Translations, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv(VARIABLE, "0")
    expected = list_facts(run_loop(""))
    monkeypatch.delenv(VARIABLE)
    monkeypatch.setattr(translated, "HOT_WARP_INSTRUCTIONS", 1)
    monkeypatch.setattr(
        translated,
        "write_pieces",
        lambda pieces: "def piece_0(machine: CoreMachine, start: s64) -> s64:\n    return nothing\n",
    )
    for _ in range(2):
        found = run_loop("")
        assert list_facts(found) == expected
        assert translations.wait() == 0
    assert [one for one in caplog.messages if "nothing is unknown" in one]


def test_a_variable_leaves_kernels_to_the_interpreter(
    translations: Translations, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(translated, "HOT_WARP_INSTRUCTIONS", 1)
    monkeypatch.setenv(VARIABLE, "interpreter")
    assert run_loop("").is_complete
    assert translations.wait() == 0
