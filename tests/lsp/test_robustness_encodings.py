"""Answers are the same in whatever unit the client counts columns: everything with a position, in sources and SASS documents full of other
characters than ASCII.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.editor.edits import ENCODINGS, split_slowly
from tests.lsp.test_robustness import Session, make_project

SASS_LINES = 70
SOURCE_LINES = 30


class Reader:
    """Asks by characters, and reads answers as characters.

    Args:
        session: with the server.
        encoding: what the two agreed on.
    """

    def __init__(self, session: Session, encoding: str) -> None:
        self.session = session
        self.count = ENCODINGS[encoding]
        self.lines = {uri: split_slowly(text) for uri, text in session.texts.items()}
        self.names = {uri: "/".join(uri.split("/")[-2:]) for uri in self.lines}

    def ask(self, method: str, uri: str, **more: Any) -> Any:
        return self.plain(self.session.client.request(method, {"textDocument": {"uri": uri}, **more}), uri)

    def make_position(self, uri: str, line: int, column: int) -> dict[str, int]:
        return {"line": line, "character": sum(map(self.count, self.lines[uri][line][:column]))}

    def plain(self, answer: Any, uri: str) -> Any:
        """The answer with columns in characters, and documents by the ends of their names."""
        if isinstance(answer, list):
            return [self.plain(one, uri) for one in answer]
        if not isinstance(answer, dict):
            return self.names.get(answer, answer) if isinstance(answer, str) else answer
        if set(answer) == {"line", "character"}:
            return answer["line"], self.find_column(uri, answer["line"], answer["character"])
        here = answer.get("from", answer).get("uri", uri)  # ranges of an incoming call are those of its caller
        return {key: self.plain(value, here) for key, value in answer.items()}

    def find_column(self, uri: str, line: int, units: int) -> int:
        """Characters before a column; no answer stands behind a line or in the middle of a character."""
        counted = 0
        for column, character in enumerate([*self.lines[uri][line], ""]):
            if counted == units:
                return column
            counted += self.count(character) if character else 0
        raise AssertionError((uri, line, units))

    def read_tokens(self, uri: str) -> list[tuple[int, int, str, int]]:
        """Semantic tokens as (line, column, text, type)."""
        data = self.session.client.ask("semanticTokens/full", uri)["data"]
        found, line, units = [], 0, 0
        for index in range(0, len(data), 5):
            down, right, length, kind, _ = data[index : index + 5]
            line, units = line + down, right if down else units + right
            start, end = self.find_column(uri, line, units), self.find_column(uri, line, units + length)
            found.append((line, start, self.lines[uri][line][start:end], kind))
        return found

    def read_everything(self) -> dict[str, Any]:
        """Answers to everything that is about places."""
        found: dict[str, Any] = {}
        for uri in self.session.uris:
            name, lines = self.names[uri], self.lines[uri]
            whole = {"range": {"start": {"line": 0, "character": 0}, "end": {"line": len(lines), "character": 0}}}
            for method in ("documentSymbol", "foldingRange", "codeLens", "inlayHint"):
                more = whole if method == "inlayHint" else {}
                found[f"{method} {name}"] = self.ask(f"textDocument/{method}", uri, **more)
            is_sass = uri in self.session.sass
            for line in range(min(SASS_LINES if is_sass else SOURCE_LINES, len(lines))):
                for column in choose_columns(lines[line], is_sass=is_sass):
                    place = {"position": self.make_position(uri, line, column)}
                    for method in ("hover", "definition", "documentHighlight", "prepareCallHierarchy"):
                        found[f"{method} {name} {line} {column}"] = self.ask(f"textDocument/{method}", uri, **place)
        for uri in self.session.sass:
            found[f"tokens {self.names[uri]}"] = self.read_tokens(uri)
        for item in self.session.items[:10]:
            calls = self.session.client.request("callHierarchy/incomingCalls", {"item": item})
            found[f"incoming {item['name']} {item['data']}"] = self.plain(calls, item["uri"])
        for method in ("findCauses", "findVictims", "findLinked"):
            for line in range(SOURCE_LINES):
                jumps = self.session.execute(f"gpaLsp.{method}", self.session.source, line)
                found[f"{method} {line}"] = self.plain(jumps, self.session.source)
        return found


def choose_columns(line: str, *, is_sass: bool) -> Iterator[int]:
    """The ends of a source line; the operands of an instruction."""
    if not is_sass:
        yield from sorted({0, len(line) // 2, len(line)})
        return
    yield from [column for column in range(16, len(line)) if line[column - 1] in " [" and line[column] in "RU@P"][:3]


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    found = {}
    folder = make_project(tmp_path_factory.mktemp("encoding") / "project")
    for encoding in ENCODINGS:
        session = Session(folder, encoding)
        try:
            found[encoding] = Reader(session, encoding).read_everything()
            session.check()
        finally:
            session.client.kill()
    return found


def test_answers_do_not_depend_on_the_unit(answers: dict[str, dict[str, Any]]) -> None:
    plain = answers["utf-32"]
    for encoding in ENCODINGS:
        assert answers[encoding].keys() == plain.keys()
        different = [question for question in plain if answers[encoding][question] != plain[question]]
        assert different == [], (answers[encoding][different[0]], plain[different[0]])


def test_there_is_something_to_compare(answers: dict[str, dict[str, Any]]) -> None:
    plain = answers["utf-8"]
    for method, least in (
        ("hover", 20),
        ("definition", 40),
        ("documentHighlight", 40),
        ("incoming", 3),
        ("findCauses", 3),
    ):
        assert sum(bool(answer) for question, answer in plain.items() if question.startswith(method)) >= least, method
    texts = [text for question, found in plain.items() if question.startswith("tokens") for _, _, text, _ in found]
    assert any("😀" in text for text in texts) and "LDG" in " ".join(texts)
    hover = next(
        answer
        for question, answer in plain.items()
        if question.startswith("hover short_def_use/original.cu 21 ") and answer
    )
    assert hover["range"]["start"][1] > 0
