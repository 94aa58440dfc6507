"""Late registrations: for which documents, once, and by the settings that came last."""

import asyncio
from collections.abc import Iterable
from typing import Any, cast

import pytest
from lsprotocol import types

from gpa_lsp.editor.protocol.client import Client
from gpa_lsp.editor.protocol.features import (
    LateRegistrations,
    RequestFeature,
    load_features,
    make_registration,
    withdraw,
)  # fmt: skip
from gpa_lsp.editor.protocol.features.navigation import PREPARE_CALL_HIERARCHY
from gpa_lsp.editor.settings import Abilities, Settings

CATALOGUE = load_features()
CONDITIONAL = [one for one in CATALOGUE.values() if isinstance(one, RequestFeature) and one.is_conditional]
DEFINITION = "textDocument/definition"


class FakeEditor:
    """A client that remembers what it was told, and answers after as many turns of the loop as it is told to."""

    def __init__(self, *, can: bool = True, turns: Iterable[int] = ()) -> None:
        self._can = can
        self._turns = iter(turns)
        self.asked: list[tuple[str, Any]] = []
        self.registered: dict[str, types.Registration] = {}

    def can(self, path: str) -> bool:
        return self._can and path.endswith(".dynamic_registration")

    async def ask(self, method: str, params: Any) -> None:
        for _ in range(next(self._turns, 0)):
            await asyncio.sleep(0)
        if isinstance(params, types.RegistrationParams):
            (one,) = params.registrations
            assert one.id not in self.registered
            self.registered[one.id] = one
        else:
            (gone,) = params.unregisterations
            assert self.registered.pop(gone.id).method == gone.method
        self.asked.append((method, params))

    def list_filters(self) -> dict[str, list[dict[str, str]]]:
        """Method → documents; nothing is registered twice."""
        methods = [one.method for one in self.registered.values()]
        assert len(methods) == len(set(methods))
        return {one.method: cast(Any, one.register_options)["documentSelector"] for one in self.registered.values()}


def make(editor: FakeEditor) -> LateRegistrations:
    return LateRegistrations(cast(Client, editor), CONDITIONAL)


def schemes(filters: list[dict[str, str]]) -> list[str]:
    return [one["scheme"] for one in filters]


def test_there_is_something_to_register() -> None:
    methods = {feature.method for feature in CONDITIONAL}
    assert {DEFINITION, "textDocument/semanticTokens/full"} <= methods
    assert "textDocument/hover" not in methods


async def test_what_others_own_in_sources_is_for_sass_alone() -> None:
    editor = FakeEditor()
    await make(editor).update(Settings(), Abilities())
    found = editor.list_filters()
    assert schemes(found[DEFINITION]) == ["gpa-sass"]
    assert schemes(found["textDocument/prepareCallHierarchy"]) == ["gpa-sass", "file"]
    assert "textDocument/semanticTokens" in found and "textDocument/semanticTokens/full" not in found
    (tokens,) = [one for one in editor.registered.values() if one.method == "textDocument/semanticTokens"]
    assert cast(Any, tokens.register_options)["full"] is True


async def test_settings_and_abilities_decide() -> None:
    editor = FakeEditor()
    await make(editor).update(Settings(serves_definition=True), Abilities(call_hierarchy_tree=True))
    found = editor.list_filters()
    assert schemes(found[DEFINITION]) == ["gpa-sass", "file"]
    assert schemes(found["textDocument/prepareCallHierarchy"]) == ["gpa-sass"]


async def test_nothing_is_said_twice() -> None:
    editor = FakeEditor()
    registrations = make(editor)
    await registrations.update(Settings(), Abilities())
    said = len(editor.asked)
    await registrations.update(Settings(min_share_ratio=0.5), Abilities())
    assert len(editor.asked) == said == len(registrations.features)
    await registrations.update(Settings(serves_definition=True), Abilities())
    assert [method for method, _ in editor.asked[said:]] == ["client/unregisterCapability", "client/registerCapability"]


@pytest.mark.parametrize("turns", [[0] * 99, [5] * 99, [9, 0, 0, 3, 0, 7, 1] * 20])
async def test_the_last_settings_count_however_slow_the_client_is(turns: list[int]) -> None:
    editor = FakeEditor(turns=turns)
    registrations = make(editor)
    wanted = [Settings(serves_definition=bool(number % 2)) for number in range(8)]
    await asyncio.gather(*(registrations.update(settings, Abilities()) for settings in wanted))
    found = editor.list_filters()
    assert schemes(found[DEFINITION]) == ["gpa-sass", "file"]


async def test_a_client_that_cannot_be_told_late_is_told_nothing() -> None:
    editor = FakeEditor(can=False)
    registrations = make(editor)
    await registrations.update(Settings(), Abilities())
    assert registrations.features == () and editor.asked == []


def test_what_is_told_late_is_not_told_at_the_start() -> None:
    capabilities = types.ServerCapabilities(definition_provider=True, hover_provider=True, folding_range_provider=True)
    withdraw(capabilities, make(FakeEditor()).features)
    assert (capabilities.definition_provider, capabilities.folding_range_provider) == (None, None)
    assert capabilities.hover_provider is True
    untouched = types.ServerCapabilities(definition_provider=True)
    withdraw(untouched, make(FakeEditor(can=False)).features)
    assert untouched.definition_provider is True


def test_a_feature_for_no_document_is_not_registered() -> None:
    feature = RequestFeature(method=DEFINITION, answer=lambda view, params: None, serves_source=lambda *_: False)
    assert make_registration(feature, Settings(), Abilities()) is None


def test_clients_with_a_tree_keep_the_hierarchy_of_sources_free() -> None:
    feature = PREPARE_CALL_HIERARCHY
    assert feature.serves_source(Settings(), Abilities())
    assert not feature.serves_source(Settings(), Abilities(call_hierarchy_tree=True))
