"""Catalogues of features and commands, and commands that show kernels; what features answer stands in ``tests/editor/scenes``."""

import re
from pathlib import Path
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import pytest
from lsprotocol import types

from gpa_lsp.editor.protocol.commands import load_commands
from gpa_lsp.editor.protocol.features import load_features
from gpa_lsp.editor.protocol.server import Dispatcher
from gpa_lsp.editor.snapshot import Snapshot
from gpa_lsp.editor.source.hover import describe_line_page
from gpa_lsp.editor.source.lenses import list_symbols
from tests.editor.views import LISTING, SOURCE, make_profile, make_snapshot, make_view
from tests.report_builder import build_kernel

SAXPY = build_kernel(LISTING, name="saxpy(float*, float*)", mangled_name="_Z5saxpyPfS_")
SAXPY_PROFILE = make_profile(SAXPY, texts={"saxpy.cu": SOURCE, "scale.h": "a\nb\n"})
PROTOCOL = Path(__file__).parent.parent.parent / "editors" / "PROTOCOL.md"


def test_the_catalogues_hold_what_the_server_offers() -> None:
    methods = [feature.method for feature in load_features().values()]
    assert len(set(methods)) == len(methods)
    assert set(methods) >= {
        "gpaLsp/heat",
        "textDocument/codeLens",
        "textDocument/hover",
        "textDocument/inlayHint",
        "textDocument/publishDiagnostics",
        "workspace/symbol",
    }


def test_every_command_is_documented_for_authors_of_clients() -> None:
    names = load_commands()
    documented = set(re.findall(r"gpaLsp\.\w+", PROTOCOL.read_text(encoding="utf-8")))
    assert set(names) <= documented


def test_control_codes_are_in_words() -> None:
    kernel = build_kernel("saxpy.cu:5  X  ; wait=9", name="saxpy")
    columns = kernel.instructions
    columns.wait_mask[0], columns.write_barrier[0], columns.read_barrier[0], columns.yield_flag[0] = 0b101, 3, 0, 1
    view = make_view(make_profile(kernel))
    assert view is not None
    page = describe_line_page(view, 5)
    assert page is not None and "waits SB0,SB2 · sets SB3 · read sets SB0 · stall 1 · yield" in page


def test_instantiations_are_symbols_up_to_a_limit() -> None:
    view = make_view(make_profile(*(build_kernel(LISTING, name=f"saxpy<{n}>(float*)") for n in range(30))))
    assert view is not None
    assert len({symbol.name for symbol in list_symbols(view)}) == len(list_symbols(view)) == 20


class Desk:
    """A desk that remembers what a command did."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.shown: list[tuple[str, str]] = []
        self.said: list[str] = []
        self.warnings: list[str] = []
        self.reloads = 0
        self.client = self.loader = self

    def reload(self) -> None:
        self.reloads += 1

    def show_document(self, title: str, markdown: str) -> str:
        self.shown.append((title, markdown))
        return markdown

    def inform(self, text: str) -> None:
        self.said.append(text)

    def warn(self, text: str) -> None:
        self.warnings.append(text)


def run(name: str, desk: Desk, *arguments: Any) -> Any:
    return load_commands()[f"gpaLsp.{name}"](desk, arguments)


def test_a_kernel_can_be_shown() -> None:
    desk = Desk(make_snapshot(SAXPY_PROFILE))
    page = run("showKernel", desk, "_Z5saxpyPfS_")
    assert desk.shown == [("saxpy", page)]
    assert "| `saxpy.cu:5` |" in page and "grid 128 · block 256" in page


@pytest.mark.parametrize("arguments", [(), ("other",), (None,), ([],), ({"a": 1},)])
def test_a_kernel_that_is_not_there_is_said_to_be_missing(arguments: tuple[Any, ...]) -> None:
    desk = Desk(make_snapshot(SAXPY_PROFILE))
    assert run("showKernel", desk, *arguments) is None
    assert (desk.shown, len(desk.said)) == ([], 1)


def test_all_kernels_can_be_shown() -> None:
    desk = Desk(make_snapshot(SAXPY_PROFILE))
    assert "| saxpy " in run("showReport", desk, "ignored")
    assert "No profile was found" in run("showReport", Desk(Snapshot()))


def test_reload_reloads() -> None:
    desk = Desk(Snapshot())
    run("reload", desk)
    assert desk.reloads == 1


def test_a_broken_feature_is_told_once_and_takes_nothing_with_it() -> None:
    desk = Desk(Snapshot())
    dispatcher = Dispatcher(lambda: desk)  # type: ignore[arg-type, return-value]

    def fail() -> None:
        raise ZeroDivisionError

    assert [dispatcher.guard("hover", fail, "default") for _ in range(3)] == ["default"] * 3
    assert dispatcher.guard("lens", lambda: "fine", None) == "fine"
    assert desk.warnings == ["hover failed; see the log of the language server"]


def test_features_take_and_give_what_the_protocol_says() -> None:
    """Types of the protocol let mypy check every answer. ``gpaLsp/heat`` is ours alone."""
    checked = 0
    for feature in load_features().values():
        if feature.method not in types.METHOD_TO_TYPES:
            assert feature.method.startswith("gpaLsp/")
            continue
        params, result = get_args(feature.method.__orig_class__)  # type: ignore[attr-defined]
        request, response = types.METHOD_TO_TYPES[feature.method][:2]
        assert params is get_type_hints(request)["params"]
        said = type(None) if response is None else get_type_hints(response)["result"]
        assert list_choices(result) == list_choices(said), feature.method
        checked += 1
    assert checked >= 15


def list_choices(kind: Any) -> set[tuple[Any, ...]]:
    """The members of a union, sequences with what they are of."""
    members = get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)
    return {
        (get_origin(one), *map(frozenset, map(list_choices, get_args(one)))) if get_args(one) else (one,)
        for one in members
    }


def test_the_legend_names_every_colour() -> None:
    from gpa_lsp.editor.protocol.features.outlines import SEMANTIC_TOKENS

    standard = {one.value for one in types.SemanticTokenTypes} | {"label"}
    assert set(SEMANTIC_TOKENS.options.token_types) <= standard
    own = {"hot", "warm"}
    assert set(SEMANTIC_TOKENS.options.token_modifiers) - own <= {one.value for one in types.SemanticTokenModifiers}
