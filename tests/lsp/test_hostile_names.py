"""Every answer, notification and page of the server, over a profile whose every text is hostile."""

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest
from hypothesis import given
from lsprotocol import types
from pygls.protocol import default_converter

from gpa_lsp.editor.protocol import client as client_module
from gpa_lsp.editor.protocol.commands import load_commands
from gpa_lsp.editor.protocol.features import PushFeature, load_features
from gpa_lsp.editor.protocol.server import Dispatcher
from gpa_lsp.editor.settings import Abilities
from gpa_lsp.editor.snapshot import LoadedProfile, measure_kernel
from gpa_lsp.report.line_map import split_lines
from gpa_lsp.report.measured_files import MeasuredFile
from gpa_lsp.report.model import KernelReport
from tests.conftest import examples
from tests.editor.sessions import Session
from tests.hostile_names import EVERYTHING, EVIL, count_pictures, count_tokens, find_autolinks, find_unseen, spoil
from tests.render.examples import SOURCE
from tests.render.html_report.page_examples import make_answered

URI = "file:///project/0.cu"
TRUTH = {"uri", "targetUri", "data", "arguments", "mangled", "sassUri", "newText", "kind", "languageId"}
"""Members whose text is for programs."""

STANDING = ("heading", "link", "image", "html", "hr", "fence", "code_block", "blockquote", "list_item", "table", "tr_")


def make_profile(kernel: KernelReport, evil: str) -> LoadedProfile:
    """The profile, with its sources here under tame names: those of files on this machine are the machine's."""
    names = sorted({row.file for row in kernel.lines if row.file is not None})
    files = {
        name: MeasuredFile(
            compiled_path=name,
            local_path=f"/project/{number}.cu",
            lines=split_lines(f"{SOURCE}{evil}"),
        )
        for number, name in enumerate(names)
    }
    return LoadedProfile(
        path=Path(f"profile{evil}.ncu-rep"), files=files, kernels=(measure_kernel(kernel, 1_700_000_000_000_000_000),)
    )


class Client:
    """Client that gets the answers of the dispatcher, and what is sent to it.

    Args:
        evil: in every text of the profile.
    """

    def __init__(self, evil: str) -> None:
        self.sent: list[Any] = []
        self.session = Session(
            make_profile(spoil(make_answered(), evil), evil),
            {"/project/0.cu": SOURCE},
            abilities=Abilities(heat=True),
        )
        self.editor = client_module.Client(self, types.ClientCapabilities())
        self.handlers: dict[str, Callable[..., Any]] = {}
        self.features = load_features()
        self.commands = load_commands()
        dispatcher = Dispatcher(lambda: self.session)  # type: ignore[arg-type, return-value]
        dispatcher.register(self, self.features, self.commands)  # type: ignore[arg-type]

    def feature(self, method: str, options: Any = None) -> Callable[[Any], None]:
        return lambda handler: self.handlers.update({method: handler})

    def command(self, name: str) -> Callable[[Any], None]:
        return lambda handler: self.handlers.update({name: handler})

    def notify(self, method: str, params: Any = None) -> None:
        self.sent.append(params)

    def list_answers(self) -> Iterator[Any]:
        sass = self.session.sass.find_uri(self.session.snapshot.visible[0])
        item = self.session.sass.make(sass)
        assert item is not None
        self.session.sass.open(sass, item.text)
        for uri, count in ((URI, 12), (sass, len(item.text.splitlines()))):
            for method, handler in self.handlers.items():
                if not method.startswith("gpaLsp."):
                    yield from self._ask(method, handler, uri, count)
        for feature in self.features.values():
            if isinstance(feature, PushFeature):
                view = self.session.view(URI)
                assert view is not None
                self.editor.notify(feature.method, feature.wrap(URI, 1, feature.list_items(view)))
        self._say()
        yield from self.sent
        yield from self._run_commands(sass)

    def _ask(self, method: str, handler: Callable[..., Any], uri: str, count: int) -> Iterator[Any]:
        params_type = types.METHOD_TO_TYPES[method][2]
        whole = types.Range(types.Position(0, 0), types.Position(count, 0))
        known: dict[str, Any] = {
            "text_document": types.TextDocumentIdentifier(uri),
            "range": whole,
            "query": "",
            "context": types.ReferenceContext(True)
            if "reference" in method.lower()
            else types.CodeActionContext(diagnostics=[]),
        }
        names = {field.name for field in attrs.fields(params_type)}
        if "item" in names:
            for line in range(count):
                place = types.CallHierarchyPrepareParams(known["text_document"], types.Position(line, 5))
                for item in self.handlers["textDocument/prepareCallHierarchy"](place) or ():
                    yield handler(params_type(item=item))
        elif params_type is types.CodeAction:
            asked = types.CodeActionParams(known["text_document"], whole, known["context"])
            for action in self.handlers[types.TEXT_DOCUMENT_CODE_ACTION](asked) or ():
                yield asyncio.run(handler(action))
        elif "position" in names:
            for line in range(count):
                for character in (5, 50):
                    known["position"] = types.Position(line, character)
                    yield handler(params_type(**{name: one for name, one in known.items() if name in names}))
        else:
            yield handler(params_type(**{name: one for name, one in known.items() if name in names}))

    def _say(self) -> None:
        name = self.session.snapshot.visible[0].name
        self.editor.warn(f"of {name}")
        self.editor.notify("gpaLsp/status", {"state": "reading", "text": name, "profiles": 1, "kernels": 1})
        bar = self.editor.start_progress(name, lambda: None)
        bar._is_shown = True
        bar.report(name, 0.5)
        bar.end(name)

    def _run_commands(self, sass: str) -> Iterator[Any]:
        mangled = self.session.snapshot.visible[0].kernel.report.mangled_name
        places = [[uri, line] for uri in (URI, sass) for line in range(12)]
        for name in ("listKernels", "listHotSpots", "showReport", "showHistory"):
            yield run(self.handlers[f"gpaLsp.{name}"])
        yield run(self.handlers["gpaLsp.showKernel"], mangled)
        yield run(self.handlers["gpaLsp.readDocument"], sass)
        for name in ("findCauses", "findVictims", "findLinked", "goToCause", "openSass", "showLine"):
            for place in places:
                yield run(self.handlers[f"gpaLsp.{name}"], *place)
        for place in places:
            yield run(self.handlers["gpaLsp.findChain"], *place, "incoming")


def run(handler: Callable[..., Any], *arguments: Any) -> Any:
    """A command's result; none of these waits for anything."""
    try:
        handler(*arguments).send(None)
    except StopIteration as done:
        return done.value
    raise AssertionError("it waits")


def list_shown(value: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """Every text that people read in an answer as it is sent, and of what kind it is."""
    if isinstance(value, dict):
        for key, one in value.items():
            if key not in TRUTH and not (key == "command" and isinstance(one, str)):
                is_markdown = value.get("kind") == "markdown" and key == "value"
                yield from list_shown(one, "markdown" if is_markdown else key)
    elif isinstance(value, list | tuple):
        for one in value:
            yield from list_shown(one, name)
    elif isinstance(value, str):
        yield ("markdown" if value.startswith("# ") else name), value


def show_everything(evil: str) -> tuple[list[tuple[str, str]], Client]:
    client = Client(evil)
    converter = default_converter()
    answers = [converter.unstructure(one) for one in client.list_answers()]
    json.dumps(answers, ensure_ascii=True)
    return [shown for answer in answers for shown in list_shown(answer)], client


def count_standing(markdown: str) -> int:
    """Blocks, links, images and HTML."""
    return sum(count for kind, count in count_tokens(markdown).items() if kind.startswith(STANDING))


def list_faults(evil: str) -> list[str]:
    shown, _ = show_everything(evil)
    tame, _ = show_everything("k" * len(evil))
    faults = []
    for kind, text in dict.fromkeys(shown):
        is_long = kind in ("markdown", "text", "message")
        faults += [f"{kind}: {fault}" for fault in find_unseen(text)]
        if "\n" in text and not is_long:
            faults.append(f"{kind} has several lines: {text[:80]!a}")
        if kind == "markdown":
            faults += [f"a link: {link}" for link in find_autolinks(text)]
            dangers = {name: count for name, count in count_tokens(text).items() if name.startswith(("link", "html"))}
            faults += [f"{dangers}: {text[:200]!a}"] if dangers else []
    lines, usual = ([text.count("\n") for kind, text in one if kind == "message"] for one in (shown, tame))
    faults += [f"messages have {lines} line ends in place of {usual}"] if lines != usual else []
    pages, expected = ([text for kind, text in one if kind == "markdown"] for one in (shown, tame))
    if len(pages) != len(expected):
        return [*faults, f"{len(pages)} pages and hovers, not {len(expected)}"]
    for page, harmless in zip(pages, expected, strict=True):
        if count_pictures(page) != count_pictures(harmless):
            faults.append(f"pictures {count_pictures(page)}, not {count_pictures(harmless)}: {page[:300]!a}")
        if count_standing(page) != count_standing(harmless):
            more = count_tokens(page) - count_tokens(harmless), count_tokens(harmless) - count_tokens(page)
            faults.append(f"{more}: {page[:300]!a}")
    return faults


@pytest.mark.parametrize("evil", EVERYTHING, ids=["steering", "markup", "markup backwards", "kindly"])
def test_names_are_text_in_every_answer(evil: str) -> None:
    assert list_faults(evil) == []


@examples(8)
@given(EVIL)
def test_names_are_text_in_every_answer_whatever_they_are(evil: str) -> None:
    assert list_faults(evil) == []


def test_people_read_names_as_they_are() -> None:
    (kindly,) = EVERYTHING[3:]
    shown, _ = show_everything(kindly)
    titles = [text for kind, text in shown if kind == "title"]
    assert any(kindly in text for text in titles)
