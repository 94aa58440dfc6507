"""What came of recording launches, as ``gpa-lsp emulate`` wrote it, in one line for the user."""

import json
import logging
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.basis.numbers import format_count_of
from gpa_lsp.basis.visible_text import make_one_line, shorten
from gpa_lsp.collect.model import CommandResult
from gpa_lsp.collect.result_words import describe_ending
from gpa_lsp.processes.signals import describe_signal
from gpa_lsp.report.names import shorten_name

_LOG = logging.getLogger(__name__)

_MOST_BYTES = 64 << 20
_MOST_NAMES = 6
_MOST_REASONS = 4
_MOST_CHARACTERS = 200
_ERROR = "gpa-lsp: error: "


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedLaunches:
    """What a program left.

    Attributes:
        descriptions: that were written.
        kernels: names of those that have a description now.
        left_out: names of the others by the reason why.
        ending: how the program ended, where it did not end well; else empty.
    """

    descriptions: tuple[Path, ...]
    kernels: tuple[str, ...]
    left_out: dict[str, tuple[str, ...]]
    ending: str

    def describe(self) -> str:
        """What was recorded, what was not and why, and how the program ended, unless it ended well.

        >>> RecordedLaunches(descriptions=(), kernels=("a", "b"), left_out={"too large": ("c",)}, ending="").describe()
        '2 kernels: a, b; not recorded: c (too large)'
        >>> RecordedLaunches(descriptions=(), kernels=(), left_out={}, ending="it timed out").describe()
        'no kernel was launched; it timed out'
        """
        parts = [f"{format_count_of(len(self.kernels), 'kernel')}: {_list_names(self.kernels)}"] if self.kernels else []
        if self.left_out:
            reasons = [f"{_list_names(names)} ({reason})" for reason, names in self.left_out.items()]
            more = len(reasons) - _MOST_REASONS
            parts.append(
                f"not recorded: {', '.join(reasons[:_MOST_REASONS])}{f', and more ({more})' if more > 0 else ''}"
            )
        if not parts:
            parts.append("no kernel was launched")
        return "; ".join([*parts, *filter(None, [self.ending])])


def read_recorded(path: Path) -> RecordedLaunches | None:
    """Read what the command wrote; None where it wrote nothing, or not all of it."""
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise ValueError("too large")
        document = json.loads(path.read_bytes())
        described = document["described"]
        left_out: dict[str, list[str]] = defaultdict(list)
        for one in described["left_out"]:
            left_out[_shorten(one["reason"])].append(_name(one["name"]))
        return RecordedLaunches(
            descriptions=tuple(Path(name) for name in described["written"]),
            kernels=tuple(map(_name, described["kernels"])),
            left_out={reason: tuple(names) for reason, names in left_out.items()},
            ending=_describe_end(document["end"]),
        )
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        _LOG.warning("what was recorded cannot be read: %r", error)
        return None


def explain_failure(result: CommandResult) -> str:
    """Why nothing was written: what the command said last, else how it ended."""
    errors = [line for line in result.tail if line.startswith(_ERROR)]
    return _shorten(errors[-1].removeprefix(_ERROR)) if errors else describe_ending(result)


def _describe_end(end: dict[str, Any]) -> str:
    if end["ending"] != "ended":
        return f"the program {_shorten(str(end['ending']))}"
    status = end["status"] or 0
    if status < 0:
        return f"the program was ended by {describe_signal(-status)}"
    return f"the program ended with status {status}" if status else ""


def _list_names(names: Sequence[str]) -> str:
    more = len(names) - _MOST_NAMES
    return f"{', '.join(names[:_MOST_NAMES])}{f' and {more} more' if more > 0 else ''}"


def _name(name: str) -> str:
    return make_one_line(shorten_name(name))


def _shorten(text: str) -> str:
    return shorten(make_one_line(text), _MOST_CHARACTERS)
