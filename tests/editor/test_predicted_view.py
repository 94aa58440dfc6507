"""Emulated findings beside measurements of the same launch, and their names; the rest stands in ``scenes/predicted.md``."""

import re
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from lsprotocol.types import CodeAction, Command
from msgspec.structs import replace

from gpa_lsp.code.ptx.model import Space
from gpa_lsp.editor.document_view import DocumentView
from gpa_lsp.editor.protocol.safe_markdown import defuse
from gpa_lsp.editor.source.actions import list_actions
from gpa_lsp.editor.source.hints import list_hints
from gpa_lsp.editor.source.hover import describe_hover, describe_line_page
from gpa_lsp.editor.source.lenses import list_lenses
from tests.editor.predictions import (
    LAUNCH,
    NAME,
    RESULT,
    SHARED,
    SOURCE,
    TEXT,
    change,
    view,
)
from tests.editor.sessions import NoVerifier
from tests.editor.views import LISTING, make_profile, make_snapshot
from tests.report_builder import build_kernel


def hints(seen: DocumentView) -> list[tuple[int, str]]:
    return [(hint.position.line, str(hint.label)) for hint in list_hints(seen, 1, 99)]


def lenses(seen: DocumentView) -> list[tuple[int, Command]]:
    return [(lens.range.start.line, lens.command) for lens in list_lenses(seen)]


def actions(seen: DocumentView, line: int) -> list[CodeAction]:
    return list_actions(seen, line, line, lambda kind: kind == "refactor.rewrite", NoVerifier())


def test_a_save_that_was_not_simulated_says_so_where_the_numbers_would_be() -> None:
    words = "not simulated on save: it took 3.2 s; click to simulate"
    (command,) = (one for line, one in lenses(replace(view(), unsimulated=words)) if line == 1 and one.title == words)
    assert (command.command, command.arguments) == ("gpaLsp.simulate", (SOURCE.as_uri(), NAME))


@pytest.mark.parametrize(
    ("sectors", "grid", "words"),
    [
        (512, (16, 1, 1), "512 sectors measured, 512 emulated: they agree"),
        (
            400,
            (16, 1, 1),
            "400 sectors measured, 512 emulated: **they differ**; are the arguments those of the measured launch?",
        ),
        (512, (17, 1, 1), None),
    ],
)
def test_the_launch_that_was_measured_stands_beside_the_emulated_one(
    sectors: int, grid: tuple[int, int, int], words: str | None
) -> None:
    listing = LISTING.replace("saxpy.cu", "k.cu")
    measured: Any = build_kernel(listing, mangled_name=NAME, grid=(16, 1, 1), block=(64, 1, 1))
    counters = {"global_sectors": np.array([-1, sectors, -1, -1])}
    kernel = replace(measured, code=SimpleNamespace(counters=counters))
    launch = replace(LAUNCH, grid=grid, block=(64, 1, 1))
    snapshot = make_snapshot(make_profile(kernel, texts={"k.cu": TEXT}))
    text = describe_line_page(view(replace(RESULT, launches=(launch, *RESULT.launches[1:])), snapshot=snapshot), 5)
    assert text is not None and (words in text if words else "sectors measured" not in text)


def test_names_of_strangers_lead_nowhere() -> None:
    hostile = change(SHARED, space=Space.GLOBAL, arrays=("`[here](command:evil)<img src=x>",))
    text = describe_hover(view(replace(RESULT, accesses=(hostile,))), 6)
    assert text is not None and "](command" in text
    assert "](command" not in re.sub(r"`[^`\n]*`", "", defuse(text)).replace("\\](", "")
