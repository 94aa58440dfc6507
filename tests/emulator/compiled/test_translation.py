"""Kernels written in C give every bit of memory, every count and every finding that the interpreter and numpy give."""

import random
from collections.abc import Callable

import msgspec.structs
import numpy as np
import pytest

from gpa_lsp.execution.emulator import emulate as emulate_module
from gpa_lsp.execution.emulator.compiled import translated
from gpa_lsp.execution.emulator.compiled.translated import Translations
from gpa_lsp.execution.emulator.emulate import emulate
from gpa_lsp.execution.emulator.model import Emulation
from tests.emulator.compiled.comparing import by_numpy, list_facts
from tests.emulator.compiled.test_equality import ACCESSES, GROUPS, build_access, run_together
from tests.emulator.engine.running import SMALL, Array, run_text, zeros
from tests.emulator.engine.test_random_control_flow import ProgramMaker
from tests.emulator.kernels.running import BUDGET, Case, load_module
from tests.emulator.kernels.test_faults import CASES as FAULTY
from tests.emulator.kernels.test_truth import OWN

_CASES = [case for case in (*OWN, *FAULTY) if case.architecture == 80][::3]
"""Some: a C compiler takes a second for each."""
_FEW = 50_000
_FEW_LANES = 32
"""Of a batch: where accesses go is known behind the first one, and the others are executed by what was translated."""


@pytest.fixture(autouse=True)
def translations(monkeypatch: pytest.MonkeyPatch) -> Translations:
    """Forget all translations; launches are many batches."""
    monkeypatch.setattr(emulate_module, "_BEST_LANES", _FEW_LANES)
    monkeypatch.setattr(emulate_module, "_BEST_CORE_LANES", _FEW_LANES)
    monkeypatch.setattr(emulate_module, "_MOST_REPEATED", 3)
    translations = Translations()
    monkeypatch.setattr(emulate_module, "TRANSLATIONS", translations)
    monkeypatch.setattr(translated, "_OPERATIONS_A_SECOND", 1 << 30)
    return translations


def list_different(
    run: Callable[[], Emulation], translations: Translations, monkeypatch: pytest.MonkeyPatch
) -> list[str]:
    """Facts that differ between numpy, the interpreter, and the translation made after it."""
    with by_numpy():
        executed = run()
        expected = list_facts(executed)
    # Where accesses go is known behind the last one.
    monkeypatch.setattr(translated, "HOT_WARP_INSTRUCTIONS", max(executed.warp_instructions, 1))
    found = []
    for name in ("interpreted", "translated"):
        emulation = run()
        found += [f"{name}: {fact}" for fact, value in list_facts(emulation).items() if value != expected[fact]]
        assert translations.wait() == (emulation.warp_instructions > 0)
    return found


@pytest.mark.parametrize("case", _CASES, ids=str)
def test_kernels_do_the_same(case: Case, translations: Translations, monkeypatch: pytest.MonkeyPatch) -> None:
    module = load_module(case.source, case.architecture, *case.flags)
    budget = msgspec.structs.replace(BUDGET, warp_instructions=_FEW) if case in FAULTY else BUDGET
    assert (
        list_different(
            lambda: emulate(module, case.launch, budget=budget, check_races=False), translations, monkeypatch
        )
        == []
    )


@pytest.mark.parametrize("number", range(len(GROUPS)))
def test_instructions_give_the_same_bits(
    number: int, translations: Translations, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = GROUPS[number]
    assert list_different(lambda: run_together(texts, number, leave=True), translations, monkeypatch) == []


@pytest.mark.parametrize("text", ACCESSES)
def test_accesses_and_their_findings_are_the_same(
    text: str, translations: Translations, monkeypatch: pytest.MonkeyPatch
) -> None:
    module, launch = build_access(text)
    assert (
        list_different(lambda: emulate(module, launch, budget=SMALL, check_races=False), translations, monkeypatch)
        == []
    )


@pytest.mark.parametrize("seed", range(8))
def test_programs_that_jump_anywhere_do_the_same(
    seed: int, translations: Translations, monkeypatch: pytest.MonkeyPatch
) -> None:
    body, generator = ProgramMaker(seed).make(), random.Random(seed)
    block, grid = generator.choice((32, 48, 96)), generator.randint(1, 40)
    given = np.random.Generator(np.random.PCG64(seed)).integers(0, 64, block * grid, dtype=np.uint32)
    arrays: dict[str, Array] = {"in": given, "out": zeros(4 * block * grid)}
    assert list_different(lambda: run_text(body, arrays, grid=grid, block=block), translations, monkeypatch) == []
