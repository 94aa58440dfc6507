"""Annotations stay exact under every edit: whatever carries a number stands on the very line the number was measured on.

Each line of a measured text has a share of its own, so that a number says which line it belongs to. After each of thousands of random steps
(edits in three encodings, line ends of all kinds, closing and opening, new profiles, other settings) every number in hints, diagnostics, heat and
hovers is traced back and held against the text as a slow and simple oracle has it.
"""

import random
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types

from gpa_lsp.editor.documents import Documents
from gpa_lsp.editor.protocol.document_sync import Pushes
from gpa_lsp.editor.protocol.features.marks import (
    HEAT,
    PUBLISH_DIAGNOSTICS,
    answer_code_lens,
    answer_hover,
    answer_inlay_hint,
)
from gpa_lsp.editor.settings import Abilities, Settings, Severity
from gpa_lsp.editor.snapshot import LoadedProfile, Snapshot
from tests.conftest import IS_NIGHTLY
from tests.editor.edits import ENCODINGS, Typist, apply_slowly, make_units, split_slowly
from tests.editor.test_text_changes import read_changes
from tests.editor.views import make_profile
from tests.lsp.conftest import LISTINGS, write_profile
from tests.lsp.raw_client import ALL_CAPABILITIES, WHOLE, RawClient
from tests.patience import set_limits
from tests.report_builder import build_kernel

SEQUENCES = 20_000 if IS_NIGHTLY else 400
BLOCKS = 10
STEPS = 5

PATH = "/project/k.cu"
URI = f"file://{PATH}"
SOURCE_LINES = (
    "#include <x>", "", "__global__ void hot(float *x)", "{", "    int i = threadIdx.x;", "    x[i] += 1;",
    "    if (i)", "    {", "        x[i] *= 2;  // é", "    }", "    x[i] += 1;", "\t// 😀 \x0c form feed",
    "    sync();", "    x[i] = y;\u2028", "}", "", "__global__ void cold(int n)", "{", "    x[i] += 1;", "}",
)  # fmt: skip
WORDS = (
    *SOURCE_LINES,
    "    x[i] += 1;\n",
    "    }\r\n",
    "\n",
    "\r",
    "\r\n",
    "x",
    " ",
    "é",
    "😀",
    "\x0c",
    "__global__ void hot(int)\n{\n",
)
SHARES = {"hot(float*)": range(1, 13), "cold(int)": range(13, 18)}
"""Kernel → the percents of its samples on the lines it was measured on: whatever the kernel, a whole percent names a line."""


@dataclass
class Measurement:
    """A text and where on it a kernel's shares were measured.

    Attributes:
        kernel: its name.
        lines: of the text.
        line_of: percent → 1-based line.
    """

    kernel: str
    lines: list[str]
    line_of: dict[int, int]

    def write_listing(self) -> str:
        listing = [f"k.cu:{line}  FADD R0, R1, R2  ; wait={10 * share}" for share, line in self.line_of.items()]
        return "\n".join([*listing, f"-  ; selected={1000 - 10 * sum(self.line_of)}"])

    def build(self, measured_s: int) -> LoadedProfile:
        kernel = build_kernel(self.write_listing(), name=self.kernel, measured_unix_s=measured_s)
        text = "\n".join(self.lines)
        assert split_slowly(text) == self.lines
        profile = make_profile(
            kernel, path=f"{self.kernel}.ncu-rep", texts={"k.cu": text}, modified_ns=measured_s * 10**9
        )
        assert profile.kernels[0].report.total_samples == 1000
        return profile

    def is_of(self, lines: list[str]) -> bool:
        """Whether these are the lines that were measured, but for white space around them."""
        return [line.strip() for line in self.lines] == [line.strip() for line in lines]


def measure(kernel: str, text: str, chance: random.Random) -> Measurement:
    """Measure a kernel in a text: some of its lines get shares."""
    lines = split_slowly(text)
    chosen = chance.sample(range(1, len(lines) + 1), min(len(SHARES[kernel]), len(lines)))
    return Measurement(kernel, lines, dict(zip(SHARES[kernel], chosen, strict=False)))


@dataclass
class Oracle:
    """Truth about annotated lines.

    Attributes:
        measurements: the newest of each kernel.
        text: of the document.
    """

    measurements: dict[str, Measurement]
    text: str

    def check(self, found: dict[int, int], shown: set[int]) -> None:
        """Hold numbers against the texts.

        Args:
            found: 1-based line now → percent on it, of the kernel that has most there.
            shown: the percents that are to be shown where nobody has more.
        """
        current = split_slowly(self.text)
        for measurement in self.measurements.values():
            measured, own = measurement.lines, set(measurement.line_of)
            pairs = sorted((line, measurement.line_of[share]) for line, share in found.items() if share in own)
            assert all(current[line - 1].strip() == measured[origin - 1].strip() for line, origin in pairs)
            origins = [origin for _, origin in pairs]
            assert origins == sorted(set(origins))  # each once, and in the order of the measured text
            sure = find_surely(measured, current)
            for share, origin in measurement.line_of.items():
                line = sure.get(origin)
                assert share not in shown or line is None or found.get(line, 0) >= share
        assert set(found.values()) <= shown

    def list_shares(self) -> set[int]:
        """Every percent that was measured."""
        return {share for one in self.measurements.values() for share in one.line_of}

    def list_all(self) -> dict[int, int] | None:
        """Line → largest percent when the text is what was measured; None when it is not."""
        lines = split_slowly(self.text)
        if not all(one.is_of(lines) for one in self.measurements.values()):
            return None
        marks = sorted((share, line) for one in self.measurements.values() for share, line in one.line_of.items())
        return {line: share for share, line in marks}


def find_surely(measured: list[str], current: list[str]) -> dict[int, int]:
    """Current lines of the measured lines before and after the stretch that changed; both 1-based."""
    head = count_alike(measured, current)
    rest = min(len(measured), len(current)) - head
    tail = min(count_alike(measured[::-1], current[::-1]), rest)
    shift = len(current) - len(measured)
    before = {line: line for line in range(1, head + 1)}
    return {**before, **{line: line + shift for line in range(len(measured) - tail + 1, len(measured) + 1)}}


def count_alike(one: list[str], other: list[str]) -> int:
    """Lines both begin with."""
    count = 0
    for a, b in zip(one, other, strict=False):
        if a.strip() != b.strip():
            break
        count += 1
    return count


def read_percent(text: str) -> int:
    found = re.search(r"(\d+)(?:\.0)? %", text)
    assert found is not None, text
    return int(found[1])


@dataclass
class Desk:
    """Documents with one open document, and a person who does things to it."""

    chance: random.Random
    encoding: str
    sent: dict[str, Any] = field(default_factory=dict)
    settings: Settings = field(default_factory=lambda: Settings(min_share_ratio=0.0, most_hints_on_screen=0))
    version: int = 1

    def __post_init__(self) -> None:
        units = make_units(self.encoding)
        pushed = {"diagnostics": PUBLISH_DIAGNOSTICS, "heat": HEAT}
        pushes = Pushes(pushed, self._take, lambda name, function, default: function())
        self.documents = Documents(units=units, abilities=Abilities(heat=True), watcher=pushes)
        self.typist = Typist(self.chance, self.encoding)
        self.original = self.chance.choice(("\n", "\r\n", "\r")).join(SOURCE_LINES)
        self.oracle = Oracle({}, self.original)
        self.snapshot = Snapshot()
        for kernel in SHARES:
            self.load(measure(kernel, self.original, self.chance))
        self.documents.open(URI, PATH, self.original, self.version)
        self.documents.take(self.snapshot, self.settings)

    def load(self, measurement: Measurement) -> None:
        self.oracle.measurements[measurement.kernel] = measurement
        self.snapshot = self.snapshot.with_profiles([measurement.build(self.snapshot.generation + 1)])

    def _take(self, method: str, params: Any) -> None:
        self.sent[method] = params

    def step(self) -> None:
        """Do something."""
        actions = (self.edit, self.edit, self.edit, self.undo, self.open_again, self.measure_again, self.set_options)
        self.chance.choice(actions)()

    def edit(self) -> None:
        changes = []
        for _ in range(self.chance.choice((1, 1, 1, 2, 3, 8))):
            changes.append(self.typist.choose_change(self.oracle.text, WORDS))
            self.oracle.text = apply_slowly(self.oracle.text, changes[-1:], self.encoding)
        self.version += 1
        assert self.documents.change(URI, read_changes(changes), self.version)
        self.documents.tell(URI)

    def undo(self) -> None:
        self.version += 1
        self.oracle.text = self.original
        assert self.documents.change(URI, read_changes([{"text": self.original}]), self.version)
        self.documents.tell(URI)

    def open_again(self) -> None:
        self.documents.close(URI)
        assert not self.documents.change(URI, read_changes([{"text": "lost"}]), 0)
        assert all(not list_items(params) for params in self.sent.values())
        self.documents.open(URI, PATH, self.oracle.text, self.version)

    def measure_again(self) -> None:
        kernel = self.chance.choice(sorted(SHARES))
        known = self.oracle.measurements[kernel]
        self.load(measure(kernel, self.oracle.text, self.chance) if self.chance.random() < 0.7 else known)
        self.documents.take(self.snapshot, self.settings)

    def set_options(self) -> None:
        self.settings = Settings(
            most_hints_on_screen=0,
            min_share_ratio=self.chance.choice((0.0, 0.0, 0.045, 0.5)),
            show_inlay_hints=self.chance.random() < 0.8,
            diagnostic_severity=self.chance.choice(
                (Severity.INFORMATION, Severity.HINT, Severity.WARNING, Severity.OFF)
            ),
            max_diagnostics_per_file=self.chance.choice((200, 3)),
        )
        self.documents.take(self.snapshot, self.settings)

    def check(self) -> None:
        view = self.documents.view(URI)
        assert view is not None and list(view.positions.lines) == split_slowly(self.oracle.text)
        shares = self.oracle.list_shares()
        loud = {share for share in shares if share / 100 >= self.settings.min_share_ratio}
        hints = self.read_hints(view)
        assert hints == {} or self.settings.show_inlay_hints
        if self.settings.show_inlay_hints:
            leading = view.hot_lines.list_leading()  # they have a number however small it is
            assert all(share in loud or line in leading for line, share in hints.items())
            self.oracle.check(hints, loud | set(hints.values()))
        heat = self.read_heat()
        self.oracle.check(heat, shares)
        diagnostics = self.read_diagnostics()
        are_wanted = self.settings.diagnostic_severity is not Severity.OFF
        assert len(diagnostics) <= self.settings.max_diagnostics_per_file * are_wanted
        if are_wanted:
            is_full = len(diagnostics) == self.settings.max_diagnostics_per_file
            self.oracle.check(
                diagnostics, {share for share in loud if not is_full or share >= min(diagnostics.values())}
            )
        for line in self.chance.sample(range(1, len(view.positions.lines) + 2), 2):
            self.check_hover(view, line, heat)
        whole = self.oracle.list_all()
        if whole is not None:
            assert heat == whole and view.stale == ()
        self.check_lens(view)

    def read_hints(self, view: Any) -> dict[int, int]:
        whole = types.Range(types.Position(0, 0), types.Position(10**6, 0))
        params = types.InlayHintParams(text_document=types.TextDocumentIdentifier(URI), range=whole)
        lines = split_slowly(self.oracle.text)
        found = {}
        for hint in answer_inlay_hint(view, params):
            text = lines[hint.position.line].rstrip()
            assert hint.position.character == sum(map(ENCODINGS[self.encoding], text))
            if "%" in str(hint.label):
                found[hint.position.line + 1] = read_percent(str(hint.label))
            else:
                assert hint.label == "edited since" and self.oracle.list_all() is None
        return found

    def read_heat(self) -> dict[int, int]:
        params = self.sent.get(HEAT.method, {"marks": [], "stale": []})
        found = {mark["line"] + 1: round(100 * mark["ratio"] ** 2) for mark in params["marks"]}
        assert all(read_percent(mark["text"]) == found[mark["line"] + 1] for mark in params["marks"])
        assert not set(found) & {line + 1 for line in params["stale"]}
        return found

    def read_diagnostics(self) -> dict[int, int]:
        params = self.sent.get(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        lines = split_slowly(self.oracle.text)
        found = {}
        for item in params.diagnostics if params is not None else ():
            text = lines[item.range.start.line]
            assert item.range.start.character <= item.range.end.character <= sum(map(ENCODINGS[self.encoding], text))
            found[item.range.start.line + 1] = read_percent(item.message)
        return found

    def check_hover(self, view: Any, line: int, heat: dict[int, int]) -> None:
        place = types.Position(line=line - 1, character=0)
        hover = answer_hover(view, types.HoverParams(types.TextDocumentIdentifier(URI), place))
        if line in heat:
            assert hover is not None and hover.contents.value.startswith((f"**{heat[line]} %", f"**{heat[line]}.0 %"))
            assert hover.range is not None and hover.range.start.line == line - 1
        else:
            assert hover is None or "edited since" in hover.contents.value

    def check_lens(self, view: Any) -> None:
        lines = split_slowly(self.oracle.text)
        for lens in answer_code_lens(view, types.CodeLensParams(types.TextDocumentIdentifier(URI))):
            text = lines[lens.range.start.line].strip()
            measured = {
                one.lines[line - 1].strip()
                for one in self.oracle.measurements.values()
                for line in one.line_of.values()
            }
            assert "__global__" in text or text in measured


def list_items(params: Any) -> list[Any]:
    return [*params["marks"], *params["stale"]] if isinstance(params, dict) else list(params.diagnostics)


@pytest.mark.parametrize("block", range(BLOCKS))
def test_numbers_stand_on_the_lines_they_were_measured_on(block: int) -> None:
    shown = 0
    for number in range(SEQUENCES // BLOCKS):
        seed = block * SEQUENCES + number
        chance = random.Random(seed)
        desk = Desk(chance, chance.choice(sorted(ENCODINGS)))
        desk.check()
        for _ in range(chance.randrange(1, 2 * STEPS)):
            desk.step()
            try:
                desk.check()
            except AssertionError as error:
                error.add_note(f"seed {seed}")
                raise
            shown += len(desk.read_heat())
    assert shown > SEQUENCES // BLOCKS  # something was checked


SEQUENCES_PER_SERVER = 8


@pytest.mark.parametrize("encoding", sorted(ENCODINGS))
def test_the_same_through_the_whole_server(encoding: str, tmp_path: Path) -> None:
    chance = random.Random(encoding)
    text = "\r\n".join(SOURCE_LINES) + "\r\n// é😀𝛼 – ×"
    oracle = Oracle({kernel: measure(kernel, text, chance) for kernel in SHARES}, text)
    (tmp_path / "k.cu").write_text(text, newline="")
    for number, one in enumerate(oracle.measurements.values()):
        write_profile(tmp_path / f"{number}.ncu-rep", one.write_listing(), f"name {one.kernel}", "source k.cu")
    client = RawClient(
        environment={**LISTINGS, **set_limits(poll_seconds=3600.0, most_hints_on_screen=0)}, settings={"minShare": 0}
    )
    try:
        capabilities = {**ALL_CAPABILITIES, "general": {"positionEncodings": [encoding]}}
        asked = {"client": {"heat": True, "status": True}}
        client.initialize(tmp_path, capabilities, initializationOptions=asked)
        client.wait_for("gpaLsp/status", lambda status: status["kernels"] == len(SHARES))
        for number in range(SEQUENCES_PER_SERVER):
            type_away(client, tmp_path / "k.cu", Typist(chance, encoding), oracle, is_waiting=number % 4 == 0)
        assert client.messages() == []
    finally:
        client.kill()


def type_away(client: RawClient, file: Path, typist: Typist, oracle: Oracle, *, is_waiting: bool) -> None:
    """Open the document, edit it, look at it after each edit, and close it."""
    oracle.text, version = file.read_bytes().decode(), 1
    client.forget()
    uri = client.open(file, oracle.text)
    for version in range(2, typist.chance.randrange(3, 8)):
        changes = []
        for _ in range(typist.chance.choice((1, 2, 5))):
            changes.append(typist.choose_change(oracle.text, WORDS))
            oracle.text = apply_slowly(oracle.text, changes[-1:], typist.encoding)
        document = {"uri": uri, "version": version}
        client.notify("textDocument/didChange", {"textDocument": document, "contentChanges": changes})
        oracle.check(ask_for_hints(client, uri, oracle, typist.encoding), oracle.list_shares())
    if is_waiting:
        heat = client.wait_for(HEAT.method, lambda params: params["version"] == version)
        oracle.check(
            {mark["line"] + 1: round(100 * mark["ratio"] ** 2) for mark in heat["marks"]}, oracle.list_shares()
        )
    client.close(uri)


def ask_for_hints(client: RawClient, uri: str, oracle: Oracle, encoding: str) -> dict[int, int]:
    found = {}
    lines = split_slowly(oracle.text)
    for hint in client.ask("inlayHint", uri, range=WHOLE) or ():
        line = hint["position"]["line"]
        assert hint["position"]["character"] == sum(map(ENCODINGS[encoding], lines[line].rstrip()))
        if "%" in hint["label"]:
            found[line + 1] = read_percent(hint["label"])
            hover = client.read_hover(uri, line + 1)
            assert hover.startswith((f"**{found[line + 1]} %", f"**{found[line + 1]}.0 %"))
    return found
