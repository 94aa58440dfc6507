"""WRITER: notices as workflow commands: GitHub shows them as annotations on the lines of a pull request."""

from collections.abc import Mapping, Sequence
from pathlib import PurePath

from gpa_lsp.document.notices import Notice
from gpa_lsp.document.places import PlaceNames
from gpa_lsp.foundation.errors import ProblemSeverity
from gpa_lsp.foundation.visible_text import make_visible

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
