r"""Scenes: pages of Markdown with kernels, sources and edits, and what an editor shows (``tests/editor/scenes/*.md``).

What stands before the first ``##`` is where each scene of a page begins; a scene has a heading that says what it
holds, and fenced blocks.

Setting, each block replacing what the page has of its kind:

* ````` ```source saxpy.cu `````: a text as it was measured; all sources are open, questions are about the first.
  ``none`` behind the name: nobody has a copy; ``unverified``: it was saved since; ``unfitting``: and does not fit.
* ````` ```kernel saxpy(float*) ````` with a listing of :mod:`tests.report_builder`; ````` ```blame ````` and
  ````` ```advice ````` belong to the kernel before them, or to the page's. Behind ``|`` stand more arguments of
  ``build_kernel``, and ``profile="b.ncu-rep"`` for another profile.
* ````` ```written kernel `````: a kernel in the notation of :mod:`tests.rows.written`, which is joined and blamed.
* Items of a list edit the text that was measured, one list at a time: ``* `old` → `new` ``, ``* above: `// new` ``,
  ``* below: `// new` ``, ``* in scale.h: `old` → `new` ``; ``* as measured`` for none.

* ````` ```static `````, ````` ```predicted ````` and ````` ```timed `````: what background jobs found
  (:mod:`tests.editor.findings`).

Any other block asks: its first word is a question of :data:`QUESTIONS`, then come its operands, and ``name=value`` for
options of ``Settings`` and ``Abilities``. Below stands the answer, word for word; ``UPDATE_GOLDEN=1`` rewrites answers.
"""

import ast
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lsprotocol import types
from msgspec.structs import replace

from gpa_lsp.editor import jumps
from gpa_lsp.editor.document_view import DocumentView
from gpa_lsp.editor.hot_spots import list_hot_spots
from gpa_lsp.editor.kernel_page import MOST_LENS_CHARS, describe_kernel
from gpa_lsp.editor.metrics import find_metric
from gpa_lsp.editor.protocol.features.code_actions import answer_code_action
from gpa_lsp.editor.protocol.features.marks import HEAT, list_heat
from gpa_lsp.editor.protocol.features.navigation import answer_definition
from gpa_lsp.editor.protocol.features.outlines import answer_workspace_symbol
from gpa_lsp.editor.protocol.safe_markdown import defuse
from gpa_lsp.editor.sass.library import SassView
from gpa_lsp.editor.settings import Abilities, Settings, Severity, UnverifiedChoice
from gpa_lsp.editor.snapshot import LoadedProfile
from gpa_lsp.editor.source import chains
from gpa_lsp.editor.source.diagnostics import list_diagnostics
from gpa_lsp.editor.source.hints import MOST_CHARS, list_hints
from gpa_lsp.editor.source.hover import describe_hover, describe_line_page
from gpa_lsp.editor.source.lenses import list_lenses, list_symbols
from gpa_lsp.report.measured_files import Doubt
from gpa_lsp.report.model import KernelReport
from tests.editor.findings import read_arguments, read_predicted, read_static, read_timed
from tests.editor.sass.documents import write_report
from tests.editor.sessions import Session
from tests.editor.views import make_profile
from tests.report_builder import build_kernel

PAGES = Path(__file__).parent / "scenes"
_FENCE = re.compile(r"^(?P<ticks>```+)(?P<info>[^`\n]*)\n(?P<body>.*?)^(?P=ticks)$", re.DOTALL | re.MULTILINE)
_STEP = re.compile(rf"{_FENCE.pattern}|^## (?P<heading>[^\n]+)$|(?P<edits>(?:^\* [^\n]+\n)+)", re.DOTALL | re.MULTILINE)
_EDIT = re.compile(
    r"\* (?:in (?P<file>\S+): )?(?:`(?P<old>.+?)` → `(?P<new>.*?)`|(?P<where>above|below): `(?P<added>.*)`)"
)
_OPTION = re.compile(r"(?<= )(\w+)=(\S+)")
_ENUMS = {"diagnostic_severity": Severity, "unverified_lines": UnverifiedChoice}


@dataclass(kw_only=True)
class WrittenKernel:
    name: str
    listing: str
    is_written: bool
    profile: str = "profile.ncu-rep"
    arguments: dict[str, Any] = field(default_factory=dict)
    is_simulated: bool = False

    def build(self) -> KernelReport:
        kernel = self._build()
        if not self.is_simulated:
            return kernel
        launches = [replace(one, sampling=replace(one.sampling, is_simulated=True)) for one in kernel.launches]
        return replace(kernel, launches=tuple(launches))

    def _build(self) -> KernelReport:
        if self.is_written:
            arguments = {**self.arguments}
            split = {"split": arguments.pop("split")} if "split" in arguments else {}
            return replace(write_report(self.listing, **split), **arguments)
        return build_kernel(self.listing, name=self.name, **self.arguments)


@dataclass(kw_only=True)
class Scene:
    """Measurements and documents at one place of a page."""

    sources: dict[str, str] = field(default_factory=dict)
    traits: dict[str, set[str]] = field(default_factory=dict)  # of sources
    kernels: list[WrittenKernel] = field(default_factory=list)
    edited: dict[str, str] = field(default_factory=dict)
    found: dict[str, Any] = field(default_factory=dict)  # by background jobs

    def copy(self) -> "Scene":
        kernels = [WrittenKernel(**{**vars(one), "arguments": {**one.arguments}}) for one in self.kernels]
        return Scene(sources={**self.sources}, traits={**self.traits}, kernels=kernels, found={**self.found})

    def find(self, kind: str, body: str, traits: set[str]) -> None:
        """Take what a background job (``static``, ``predicted`` or ``timed``) found of the texts as they are now."""
        texts = {**self.sources, **self.edited}
        (file, text), *others = texts.items()
        if kind == "static":
            known = self.found.get("statics")
            self.found["statics"] = read_static(body, traits, f"/project/{file}", text, known)
        elif kind == "predicted":
            self.found["predicted"] = read_predicted(body, text, others[0][1], self.found.get("predicted"))
        else:
            self.found["timed"] = read_timed(body, text, self.found.get("timed"))

    def edit(self, text: str) -> None:
        """Take a list of edits of the texts as they were measured."""
        self.edited = {}
        for item in text.strip().split("\n"):
            if item == "* as measured":
                continue
            found = _EDIT.fullmatch(item)
            assert found is not None, f"no edit: {item}"
            file = found["file"] or next(iter(self.sources))
            before = self.edited.get(file, self.sources[file])
            old, new, added = (
                part and part.replace("\\n", "\n").replace("\\t", "\t") for part in found.group("old", "new", "added")
            )
            if old is not None:
                assert old in before, f"{old!r} is not in {file}"
                self.edited[file] = before.replace(old, new)
            else:
                self.edited[file] = f"{added}\n{before}" if found["where"] == "above" else f"{before}{added}\n"

    def make_profiles(self) -> list[LoadedProfile]:
        profiles = []
        for path in dict.fromkeys(one.profile for one in self.kernels):
            kernels = [one.build() for one in self.kernels if one.profile == path]
            texts = {file: None if "none" in self.traits[file] else text for file, text in self.sources.items()}
            made = make_profile(*kernels, path=path, texts=texts)
            doubt = {"is_verified": False, "doubt": Doubt.SAVED_SINCE}
            files = {
                file: replace(one, **doubt, fits="unfitting" not in self.traits[file])
                if self.traits[file] & {"unverified", "unfitting"}
                else one
                for file, one in made.files.items()
            }
            profiles.append(replace(made, files=files))
        return profiles

    def open(self, **options: Any) -> Session:
        """A session in which the sources are open."""
        texts = {**self.sources, **self.edited}
        opened = {f"/project/{file}": text for file, text in texts.items()}
        settings = {name: one for name, one in options.items() if name in Settings.__struct_fields__}
        abilities = Abilities(**{name: one for name, one in options.items() if name not in settings})
        session = Session(self.make_profiles(), opened, settings=Settings(**settings), abilities=abilities)
        for path in opened if self.found else ():
            session.documents.note(path, **self.found)
        return session


class Asked:
    """A session, and the document in it that a question is about."""

    def __init__(self, scene: Scene, operands: Sequence[str], options: dict[str, Any], body: str) -> None:
        self.file = options.pop("in", next(iter(scene.sources), ""))
        self.session = scene.open(**options)
        self.uri = f"file:///project/{self.file}"
        self.operands = operands
        self.body = body

    @property
    def line(self) -> int:
        return int(self.operands[0])

    @property
    def view(self) -> DocumentView | None:
        return self.session.view(self.uri)

    def open_sass(self) -> SassView:
        """The SASS document of the kernel that is shown first, open."""
        uri = self.session.sass.find_uri(self.session.snapshot.visible[0])
        document = self.session.sass.make(uri)
        assert document is not None
        self.session.sass.open(uri, document.text)
        view = self.session.sass.view(uri)
        assert view is not None
        return view


def place(location: types.Location) -> str:
    file = re.sub(r"\.[0-9a-f]{8}\.nvsass$", ".nvsass", location.uri.rpartition("/")[2])
    return f"{file}:{location.range.start.line + 1}"


Answer = Callable[[Asked], Iterator[str]]
QUESTIONS: dict[str, Answer] = {}


def question(function: Answer) -> Answer:
    QUESTIONS[function.__name__.replace("_", "-")] = function
    return function


def span(found: types.Range) -> str:
    """``5:4-27``: the 1-based line, and columns."""
    end = f"{found.end.line + 1}:" if found.end.line != found.start.line else ""
    return f"{found.start.line + 1}:{found.start.character}-{end}{found.end.character}"


def read_label(hint: types.InlayHint) -> str:
    """The words of a hint, links as in Markdown."""
    if isinstance(hint.label, str):
        return hint.label
    assert any(part.location for part in hint.label), "a hint without a link is plain text"
    return "".join(f"[{part.value}]({place(part.location)})" if part.location else part.value for part in hint.label)


@question
def hints(asked: Asked) -> Iterator[str]:
    """All hints, or those from one line to another; below each its tooltip."""
    if asked.view is None:
        return
    first, last = map(int, asked.operands or (1, 10**6))
    for hint in list_hints(asked.view, first, last):
        line = hint.position.line + 1
        assert hint.position == asked.view.positions.find_end(line)
        parts = [hint.label] if isinstance(hint.label, str) else [part.value for part in hint.label]
        assert len("".join(parts)) <= MOST_CHARS
        yield f"{line}: {read_label(hint)}"
        yield from (f"    {clause}" for clause in str(hint.tooltip).split("; "))


@question
def labels(asked: Asked) -> Iterator[str]:
    """The hints without their tooltips."""
    yield from (row for row in hints(asked) if not row.startswith("    "))


@question
def problems(asked: Asked) -> Iterator[str]:
    """Diagnostics, each with the places that are related to it."""
    for one in list_diagnostics(asked.view) if asked.view else ():
        assert one.severity is not None
        message = one.message.replace("\n", "\n    ")
        yield f"{span(one.range)} {one.severity.name.lower()} {one.code}: {message}"
        yield from (f"    → {place(found.location)} {found.message}" for found in one.related_information or ())


@question
def lenses(asked: Asked) -> Iterator[str]:
    for lens in list_lenses(asked.view) if asked.view else ():
        assert lens.command is not None and lens.range.start.character == 0
        assert len(lens.command.title) <= MOST_LENS_CHARS
        command = " ".join([lens.command.command, *map(str, lens.command.arguments or ())])
        yield f"{lens.range.start.line + 1}: {lens.command.title} ({command})"


@question
def heat(asked: Asked) -> Iterator[str]:
    """Heat as it is sent: line, kind, level, ratio, kernel, and words."""
    assert asked.view is not None
    sent: Any = HEAT.wrap(asked.uri, 3, list_heat(asked.view))
    assert (sent["uri"], sent["version"]) == (asked.uri, 3)
    for mark in sent["marks"]:
        yield f"{mark['line'] + 1}: {mark['kind']} {mark['level']} {mark['ratio']:.4f} {mark['kernel']}: {mark['text']}"
    for name in ("stale", "unverified", "simulated"):
        if sent[name]:
            yield f"{name}: {', '.join(str(line + 1) for line in sent[name])}"


@question
def stale(asked: Asked) -> Iterator[str]:
    assert asked.view is not None
    yield from map(str, asked.view.stale)


@question
def hover(asked: Asked) -> Iterator[str]:
    text = (asked.view and describe_hover(asked.view, asked.line)) or "nothing"
    assert len(text.splitlines()) <= 12 and defuse(text) == text
    yield from text.splitlines()


@question
def page(asked: Asked) -> Iterator[str]:
    yield from ((asked.view and describe_line_page(asked.view, asked.line)) or "nothing").splitlines()


@question
def kernel_page(asked: Asked) -> Iterator[str]:
    yield from describe_kernel(asked.session.snapshot.visible[0]).splitlines()


@question
def spots(asked: Asked) -> Iterator[str]:
    """The hottest lines: of all documents, of the one that is asked about (``here``), or of one by its URI."""
    uri = {"": None, "here": asked.uri}.get(" ".join(asked.operands), " ".join(asked.operands))
    for location, mark in list_hot_spots(asked.session, uri):
        yield f"{place(location)} {mark.kind.value} {mark.kernel}: {mark.text}"


@question
def symbols(asked: Asked) -> Iterator[str]:
    assert asked.view is not None

    def walk(found: Sequence[types.DocumentSymbol], indent: str) -> Iterator[str]:
        for one in found:
            lines = f"{one.range.start.line + 1}-{one.range.end.line + 1}"
            yield f"{indent}{lines} {one.kind.name.lower()} {one.name}: {one.detail}"
            assert one.selection_range.start.line == one.range.start.line
            yield from walk(one.children or (), f"{indent}  ")

    yield from walk(list_symbols(asked.view), "")


@question
def kernels(asked: Asked) -> Iterator[str]:
    """Symbols of the workspace for a query."""
    found = answer_workspace_symbol(asked.session, types.WorkspaceSymbolParams(query=" ".join(asked.operands)))
    for one in found or ():
        assert isinstance(one.location, types.Location)
        yield f"{one.name} in {one.container_name} at {place(one.location)}"


def list_jumps(asked: Asked, found: Sequence[jumps.Jump]) -> Iterator[str]:
    for jump in found:
        line = f"{place(jump.location)} {jump.samples:g} {jump.ratio:.3f} {jump.text}"
        if jump.sass is None:
            yield line
            continue
        document, span = asked.session.sass.make(jump.sass.uri), jump.sass.range
        assert document is not None
        text = document.lines[span.start.line][span.start.character : span.end.character]
        yield f"{line} [{place(jump.sass)} {text}]"


@question
def causes(asked: Asked) -> Iterator[str]:
    yield from list_jumps(asked, jumps.find_causes(asked.session, asked.uri, asked.line))


@question
def victims(asked: Asked) -> Iterator[str]:
    yield from list_jumps(asked, jumps.find_victims(asked.session, asked.uri, asked.line))


@question
def definition(asked: Asked) -> Iterator[str]:
    assert asked.view is not None
    position = types.Position(asked.line - 1, 3)
    params = types.DefinitionParams(types.TextDocumentIdentifier(asked.uri), position)
    yield from map(place, answer_definition(asked.view, params) or ())


@question
def incoming(asked: Asked) -> Iterator[str]:
    """The call hierarchy of a line, three calls deep: what it is stalled on."""
    yield from walk_chain(asked, is_incoming=True)


@question
def outgoing(asked: Asked) -> Iterator[str]:
    yield from walk_chain(asked, is_incoming=False)


def walk_chain(asked: Asked, *, is_incoming: bool) -> Iterator[str]:
    assert asked.view is not None

    def list_next(item: types.CallHierarchyItem) -> list[types.CallHierarchyItem]:
        if is_incoming:
            calls = chains.list_incoming(asked.session, item.data)
            assert calls is not None and all(call.from_ranges == (call.from_.range,) for call in calls)
            return [call.from_ for call in calls]
        found = chains.list_outgoing(asked.session, item.data)
        assert found is not None and all(call.from_ranges == (item.range,) for call in found)
        return [call.to for call in found]

    def walk(item: types.CallHierarchyItem, depth: int) -> Iterator[str]:
        yield f"{'  ' * depth}{span(item.range)} {item.name}: {item.detail}"
        for one in list_next(item) if depth < 3 else ():
            yield from walk(one, depth + 1)

    item = chains.prepare(asked.view, asked.line)
    yield from ["nothing"] if item is None else walk(item, 0)


@question
def actions(asked: Asked) -> Iterator[str]:
    """Titles of the actions of a line, of the kinds behind it; below a fix what it inserts where."""
    position = types.Position(asked.line - 1, 0)
    context = types.CodeActionContext(diagnostics=[], only=list(asked.operands[1:]) or None)
    document = types.TextDocumentIdentifier(asked.uri)
    params = types.CodeActionParams(document, types.Range(position, position), context)
    for action in answer_code_action(asked.session, params) or ():
        command = [action.command.command, *map(str, action.command.arguments or ())] if action.command else []
        yield f"{action.title} ({' '.join(command)})" if command else action.title
        for uri, edits in (action.edit.changes or {} if action.edit else {}).items():
            file = "" if uri == asked.uri else f"{uri.rpartition('/')[2]}:"
            yield from (f"    {file}{span(edit.range)} {edit.new_text!r}" for edit in edits)


def read_value(name: str, text: str) -> Any:
    if name in _ENUMS:
        return _ENUMS[name][text]
    if name == "metric":
        return find_metric(text)
    return text if name == "in" else ast.literal_eval(text)


class Page:
    """A page, read step by step."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.text = path.read_text(encoding="utf-8")

    def list_headings(self) -> list[str]:
        return re.findall(r"^## (.+)$", _FENCE.sub("", self.text), re.MULTILINE)

    def play(self, heading: str | None) -> Iterator[tuple[re.Match[str], str]]:
        """The blocks that ask, of one scene or of all, each with its answer."""
        start, scene, current, has_own_kernel, has_own_source = Scene(), None, None, False, False
        for step in _STEP.finditer(self.text):
            if step["heading"]:
                scene, current, has_own_kernel, has_own_source = start.copy(), step["heading"], False, False
                continue
            target = scene or start
            if heading is not None and current not in (None, heading):
                continue
            if step["edits"]:
                target.edit(step["edits"])
                continue
            word, _, rest = step["info"].partition(" ")
            body = step["body"]
            if word in ("kernel", "written"):
                if scene is not None and not has_own_kernel:
                    target.kernels, has_own_kernel = [], True
                name, _, more = rest.partition(" | ")
                is_simulated = more == "simulated"
                arguments = {} if is_simulated else read_arguments(more)
                profile = arguments.pop("profile", "profile.ncu-rep")
                target.kernels.append(
                    WrittenKernel(
                        name=name,
                        listing=body,
                        is_written=word == "written",
                        profile=profile,
                        arguments=arguments,
                        is_simulated=is_simulated,
                    )
                )
            elif word in ("blame", "advice"):
                target.kernels[-1].arguments[word] = body
            elif word == "source":
                if scene is not None and not has_own_source:
                    target.sources, target.traits, has_own_source = {}, {}, True
                name, *traits = rest.split()
                target.sources[name], target.traits[name] = body, set(traits)
            elif word in ("static", "predicted", "timed"):
                target.find(word, body, set(rest.split()))
            elif current is None:
                raise AssertionError(f"{self.path.name}: a question before the first heading: {word}")
            else:
                yield step, self.ask(target, word, rest, body)

    def ask(self, scene: Scene, word: str, rest: str, body: str) -> str:
        options = {name: read_value(name, value) for name, value in _OPTION.findall(f" {rest}")}
        operands = _OPTION.sub("", f" {rest}").split()
        return "".join(f"{line}\n" for line in QUESTIONS[word](Asked(scene, operands, options, body)))

    def rewrite(self) -> None:
        """Put the answers of today below their questions."""
        text, behind = "", 0
        for step, answer in self.play(None):
            text += self.text[behind : step.start("body")] + answer
            behind = step.end("body")
        self.path.write_text(text + self.text[behind:], encoding="utf-8", newline="\n")


def list_pages() -> list[Page]:
    return [Page(path) for path in sorted(PAGES.glob("*.md"))]
