"""``problem`` objects, written and read."""

from pathlib import Path
from typing import Any

from gpa_lsp.errors import Problem, ProblemSeverity
from gpa_lsp.report.json_cursor import JsonCursor


def make_problem(problem: Problem) -> dict[str, Any]:
    """A ``problem`` object."""
    return {
        "severity": problem.severity.value,
        "message": problem.message,
        "path": None if problem.path is None else str(problem.path),
        "place": problem.place,
        "remedy": problem.remedy,
        "kernel": problem.kernel,
    }


def read_problem(at: JsonCursor) -> Problem:
    """A ``problem`` object.

    Raises:
        InputError: it is not one.
    """
    return Problem(
        severity=at.at("severity").choice(ProblemSeverity),
        message=at.at("message").text(),
        path=at.at("path").maybe(read_path),
        place=at.at("place").maybe(JsonCursor.text),
        remedy=at.at("remedy").maybe(JsonCursor.text),
        kernel=at.at("kernel").maybe(JsonCursor.text),
    )


def read_path(at: JsonCursor) -> Path:
    """A string as a path.

    Raises:
        InputError: it is no string.
    """
    return Path(at.text())
