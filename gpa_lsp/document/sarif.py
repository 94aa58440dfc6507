"""WRITER: notices as SARIF 2.1.0, for code scanning services and SARIF viewers; and as GitHub's workflow commands, for lines of a pull request.

Built by hand: the object models published for Python are either unmaintained or bring a validation library that costs more start-up time than
the whole command. Graphs and code flows are left out: a pair of def and use is two places, which related locations already are.

Source: OASIS, "Static Analysis Results Interchange Format (SARIF) Version 2.1.0 Plus Errata 01", 2023; section numbers below are of it.
"""

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any
from urllib.parse import quote

from gpa_lsp import __version__
from gpa_lsp.document.markdown import escape_markdown
from gpa_lsp.document.notices import Notice, Rule
from gpa_lsp.document.places import PlaceNames
from gpa_lsp.foundation.errors import ProblemSeverity
from gpa_lsp.foundation.locations import Frame
from gpa_lsp.foundation.visible_text import make_visible
from gpa_lsp.kernel.names import demangle, shorten_name
from gpa_lsp.report.source_paths import parse_compiled_path

SARIF_VERSION = "2.1.0"
SARIF_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
BASE_ID = "SRCROOT"  # Name of the folder that relative URIs are relative to (3.14.14)

_LEVELS = {ProblemSeverity.ERROR: "error", ProblemSeverity.WARNING: "warning", ProblemSeverity.NOTE: "note"}

Json = dict[str, Any]


def build_sarif(notices: Sequence[Notice], places: PlaceNames, folder: Path) -> Json:
    """A log with one run (3.13, 3.14); notices without a rule become notifications of the run, the others results.

    Args:
        notices: what to say.
        places: where sources are on this machine.
        folder: sources below it get relative URIs.
    """
    return _Log(places, folder).build(notices)


class _Log:
    def __init__(self, places: PlaceNames, folder: Path) -> None:
        self._places = places
        self._folder = folder
        self._given: Counter[tuple[str, ...]] = Counter()  # How often each identity was met

    def build(self, notices: Sequence[Notice]) -> Json:
        rules = {one.rule.name: one.rule for one in reversed(notices) if one.rule is not None}
        names = list(dict.fromkeys(one.rule.name for one in notices if one.rule is not None))
        notifications = [one for one in notices if one.rule is None]
        has_error = any(one.level is ProblemSeverity.ERROR for one in notifications)
        driver = {"name": "gpa-lsp", "version": __version__, "rules": [_make_rule(rules[name]) for name in names]}
        run = {
            "tool": {"driver": driver},
            "invocations": [
                {
                    "executionSuccessful": not has_error,
                    "toolExecutionNotifications": list(map(self._make_notification, notifications)),
                }
            ],
            "originalUriBaseIds": {BASE_ID: {"uri": self._folder.as_uri().rstrip("/") + "/"}},
            "columnKind": "utf16CodeUnits",
            "results": [
                self._make_result(one, one.rule.name, names.index(one.rule.name))
                for one in notices
                if one.rule is not None
            ],
        }
        return {"$schema": SARIF_SCHEMA, "version": SARIF_VERSION, "runs": [_make_shown(run)]}

    def _make_notification(self, notice: Notice) -> Json:
        """A notification (3.58)."""
        notification: Json = {"level": _LEVELS[notice.level], "message": {"text": notice.plain_text}}
        physical = self._make_physical(notice, notice.frame)
        return {**notification, "locations": [{"physicalLocation": physical}]} if physical else notification

    def _make_result(self, notice: Notice, rule: str, rule_index: int) -> Json:
        """A result (3.27)."""
        scheme, *_ = notice.identity
        related = [
            {
                "id": number,
                **({} if function is None else {"logicalLocations": [_make_logical(function)]}),
                "physicalLocation": self._make_physical(notice, frame),
                "message": {"text": text},
            }
            for number, (text, frame, function) in enumerate(notice.related, start=1)
        ]
        physical = self._make_physical(notice, notice.frame)
        return {
            "ruleId": rule,
            "ruleIndex": rule_index,
            "level": _LEVELS[notice.level],
            "message": {"text": notice.plain_text},
            "locations": [
                {
                    "logicalLocations": [_make_logical(notice.function)],
                    **({"physicalLocation": physical} if physical else {}),
                }
            ],
            "partialFingerprints": {scheme: self._make_fingerprint(notice.identity)},
            **({} if notice.rank is None else {"rank": notice.rank}),
            "properties": dict(notice.properties),
            **({"relatedLocations": related} if related else {}),
        }

    def _make_fingerprint(self, identity: tuple[str, ...]) -> str:
        """Fingerprint of an identity and its running number; it stays the same when lines move."""
        self._given[identity] += 1
        text = "\0".join((*identity[1:], str(self._given[identity])))
        return hashlib.sha256(text.encode("utf-8", errors="surrogatepass")).hexdigest()[:32]

    def _make_physical(self, notice: Notice, frame: Frame | None) -> Json:
        """A physicalLocation (3.29), without a region where the compiler gave no line; empty where neither line nor file is known."""
        if frame is None:
            return (
                {} if notice.path is None else {"artifactLocation": self._make_artifact(str(notice.path), notice.path)}
            )
        found = Path(frame.file) if notice.kernel is None else self._places.locate(notice.kernel, frame.file)
        region = {"region": {"startLine": frame.line}} if frame.line else {}
        return {"artifactLocation": self._make_artifact(frame.file, found), **region}

    def _make_artifact(self, path: str, found: Path | None) -> Json:
        """An artifactLocation (3.4) of a file as compiled, and as it is here."""
        if found is not None and found.is_absolute() and found.is_relative_to(self._folder):
            found = found.relative_to(self._folder)
        uri = make_artifact_uri(str(found) if found is not None else path)
        is_relative = not uri.startswith("file:")
        return {"uri": uri, "uriBaseId": BASE_ID} if is_relative else {"uri": uri}


def _make_logical(function: str) -> Json:
    """A logicalLocation (3.33)."""
    return {
        "name": shorten_name(demangle(function)),
        "fullyQualifiedName": demangle(function),
        "decoratedName": function,
        "kind": "function",
    }


def _make_rule(rule: Rule) -> Json:
    """A reportingDescriptor (3.49)."""
    words = rule.name.rpartition("/")[2].split("_")
    helped = {
        "text": f"{rule.text} {rule.help}",
        "markdown": f"**{escape_markdown(rule.text)}** {escape_markdown(rule.help)}",
    }
    return {
        "id": rule.name,
        "name": "".join(word.capitalize() for word in words),
        "shortDescription": {"text": rule.text},
        **({"fullDescription": {"text": f"{rule.text} {rule.more}"}} if rule.more else {}),
        **({"help": helped} if rule.help else {}),
        "defaultConfiguration": {"level": _LEVELS[rule.level]},
        "properties": {"tags": list(rule.tags)},
    }


def make_artifact_uri(path: str) -> str:
    r"""The URI of a path that need not exist here, of any system (3.4.3).

    >>> make_artifact_uri("/home/me/a b.cu"), make_artifact_uri("C:\\src\\k.cu"), make_artifact_uri("src/k.cu")
    ('file:///home/me/a%20b.cu', 'file:///C:/src/k.cu', 'src/k.cu')
    """
    parts = parse_compiled_path(path)
    joined = "/".join(quote(_encode(part), safe="!$&'()*+,;=@~") for part in parts.parts)
    if parts.anchor == "//":
        return f"file://{joined}"
    if parts.anchor:
        drive = parts.anchor.strip("/")
        return f"file:///{drive}/{joined}" if drive else f"file:///{joined}"
    return joined.replace(":", "%3A")


def _encode(part: str) -> bytes:
    """Bytes of a file name; lone surrogates, which no file name has, are kept."""
    try:
        return part.encode("utf-8", errors="surrogateescape")
    except UnicodeEncodeError:
        return part.encode("utf-8", errors="surrogatepass")


def _make_shown(value: Any, name: str = "") -> Any:
    """A value of the log without control characters; in message texts no name becomes a link (3.11.6)."""
    if isinstance(value, dict):
        return {make_visible(key): _make_shown(one, key) for key, one in value.items()}
    if isinstance(value, list):
        return [_make_shown(one) for one in value]
    if not isinstance(value, str):
        return value
    return make_visible(value.replace("](", "] (") if name == "text" else value)


_COMMANDS = {
    ProblemSeverity.ERROR: "error",
    ProblemSeverity.WARNING: "warning",
    ProblemSeverity.NOTE: "notice",
}


def write_github(notices: Sequence[Notice], places: PlaceNames) -> str:
    """One command per notice, on a line each.

    Args:
        notices: what to say.
        places: how sources are shown; relative to the repository's root, or GitHub cannot place them.
    """
    commands = []
    for notice in notices:
        file = notice.show_file(places)
        properties = {"file": PurePath(file).as_posix()} if file else {}
        if notice.frame is not None:
            properties["line"] = str(max(1, notice.frame.line))
        properties["title"] = notice.title
        commands.append(make_command(_COMMANDS[notice.level], notice.plain_text, properties) + "\n")
    return "".join(commands)


def make_command(name: str, message: str, properties: Mapping[str, str]) -> str:
    r"""A workflow command on one line with everything escaped that would end it early.

    Source: the escaping rules of GitHub's own toolkit: percent everywhere, colon and comma in properties as well; line ends
    are written out before.

    >>> make_command("notice", "5 % of it: a\nb", {"file": "a,b.cu", "line": "3"})
    '::notice file=a%2Cb.cu,line=3::5 %25 of it: a\\nb'
    """
    listed = ",".join(f"{key}={_escape(value, ':,')}" for key, value in properties.items())
    return f"::{name} {listed}::{_escape(message)}"


def _escape(text: str, also: str = "") -> str:
    text = make_visible(text).replace("%", "%25")
    for character in also:
        text = text.replace(character, f"%{ord(character):02X}")
    return text
