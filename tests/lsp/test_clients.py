"""The server before the capabilities of real editors, driven by pytest-lsp, which also checks that the server keeps to the specification."""

import asyncio
import os
import sys
import tempfile
import warnings
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_lsp
from lsprotocol import types
from pytest_lsp import ClientServerConfig, LanguageClient, client_capabilities, make_test_lsp_client

from tests.lsp.conftest import LISTINGS
from tests.patience import LIMIT_S

OPTIONS = {"static": {"enable": False}, "emulation": {"enable": False}}
"""Of a source that is no program the compiler has a word to say, which comes before the profile's or after it."""

_HOME = tempfile.TemporaryDirectory(prefix="gpa-lsp-test-")
"""The servers are configured before there are fixtures; each finds its own measurements only, for the workspaces differ."""


def make_client() -> LanguageClient:
    """pytest-lsp's client with the requests it has no answer for."""
    client = make_test_lsp_client()

    @client.feature(types.WORKSPACE_INLAY_HINT_REFRESH)
    @client.feature(types.WORKSPACE_CODE_LENS_REFRESH)
    def refresh(params: None) -> None:
        return None

    @client.feature(types.CLIENT_REGISTER_CAPABILITY)
    def register(params: types.RegistrationParams) -> None:
        return None

    return client


@pytest_lsp.fixture(
    params=["neovim@0.11", "neovim@0.8", "visual-studio-code", "emacs"],
    config=ClientServerConfig(
        server_command=[sys.executable, "-m", "gpa_lsp.editor.protocol"],
        client_factory=make_client,
        server_env={**os.environ, **LISTINGS, "GPA_LSP_DATA_DIR": _HOME.name},
    ),
)
async def client(lsp_client: LanguageClient, request: pytest.FixtureRequest, workspace: Path) -> AsyncIterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # "0.11.0 is the newest 0.11 there is"
        capabilities = client_capabilities(request.param)
    folder = types.WorkspaceFolder(uri=workspace.as_uri(), name="work")
    params = types.InitializeParams(
        capabilities=capabilities,
        root_uri=workspace.as_uri(),
        workspace_folders=[folder],
        process_id=os.getpid(),
        initialization_options=OPTIONS,
    )
    await lsp_client.initialize_session(params)
    yield
    await lsp_client.shutdown_session()


async def test_real_editors_get_their_answers(client: LanguageClient, workspace: Path) -> None:
    path = workspace / "saxpy.cu"
    document = types.TextDocumentIdentifier(path.as_uri())
    item = types.TextDocumentItem(uri=path.as_uri(), language_id="cuda", version=1, text=path.read_text())
    client.text_document_did_open(types.DidOpenTextDocumentParams(item))
    async with asyncio.timeout(LIMIT_S):
        while not client.diagnostics.get(path.as_uri()):
            await client.wait_for_notification(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
    assert [item.code for item in client.diagnostics[path.as_uri()]] == ["long_scoreboard", "wait", "wait"]
    hover = await client.text_document_hover_async(types.HoverParams(document, types.Position(4, 4)))
    assert hover is not None and isinstance(hover.contents, types.MarkupContent)
    assert "long_scoreboard" in hover.contents.value
    span = types.Range(types.Position(0, 0), types.Position(7, 0))
    hints = await client.text_document_inlay_hint_async(types.InlayHintParams(document, span))
    assert [hint.label for hint in hints or ()] == [
        "20 % samples, wait",
        "64 % samples, long_scoreboard",
        "15 % samples, wait",
    ]
    lenses = await client.text_document_code_lens_async(types.CodeLensParams(document))
    assert [lens.range.start for lens in lenses or ()] == [
        types.Position(1, 0),
        types.Position(1, 0),
    ]  # the kernel, and its SASS
    assert client.messages == []
