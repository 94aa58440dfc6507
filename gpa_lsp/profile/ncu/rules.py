"""What NVIDIA's own rules said about a launch: messages, estimated speedups, markers on lines and instructions."""

import re
from collections.abc import Iterator, Sequence
from typing import Any, get_args

from google.protobuf.message import DecodeError

from gpa_lsp.profile.model import (
    MessageKind,
    RuleMessage,
    RuleResult,
    RuleSpeedup,
    SourceMarker,
)
from gpa_lsp.profile.ncu.schema import Rule, RuleItem, RuleMarker, read_text

# Decode the small parts of an entry (rules, call-stack frames, functions of a table) one by one, as many as its size can honestly hold.
#
# Two bytes of a report can be an empty message that costs hundreds of bytes once it is decoded. Repeated parts are therefore declared as bytes in the
# schema and decoded here: real ones take tens of bytes each, and an entry that holds far more of them than its size suggests was made to fill
# memory; the rest of it is left out. A part that cannot be decoded costs only itself.

_FREE_PARTS = 1000
_BYTES_PER_PART = 16
_MAX_PART_BYTES = 1 << 20


class Allowance:
    """What is left for one entry, and what had to be left out."""

    def __init__(self, size_bytes: int) -> None:
        self._left = _FREE_PARTS + size_bytes // _BYTES_PER_PART
        self._left_out = 0
        self._broken = 0

    def take(self, parts: Sequence[Any]) -> Sequence[Any]:
        """The parts, or as many of the first ones as are still allowed.

        >>> allowance = Allowance(size_bytes=0)
        >>> len(allowance.take(range(999))), len(allowance.take(range(5)))
        (999, 1)
        >>> allowance.describe()
        ['4 parts are more, or larger, than an entry of this size holds; they are left out']
        """
        count = min(len(parts), self._left)
        self._left -= count
        self._left_out += len(parts) - count
        return parts if count == len(parts) else parts[:count]

    def decode(self, message_class: Any, parts: Sequence[bytes], *, is_flat: bool = False) -> Iterator[Any]:
        """Decode encoded parts, as far as they are allowed and sound.

        Args:
            parts: their bytes.
        """
        for data in self.take(parts):
            if len(data) > _MAX_PART_BYTES and not is_flat:
                self._left_out += 1
                continue
            try:
                message = message_class.FromString(data)
            except DecodeError:
                self._broken += 1
                continue
            yield message

    def describe(self) -> list[str]:
        """A sentence for everything that was left out; nothing when nothing was."""
        problems = []
        if self._left_out:
            problems.append(
                f"{self._left_out} parts are more, or larger, than an entry of this size holds; they are left out"
            )
        if self._broken:
            problems.append(f"{self._broken} parts cannot be decoded and are left out")
        return problems


_KINDS: tuple[MessageKind, ...] = get_args(MessageKind)
_GLOBAL_SCOPE = 2
_SASS_MARKER = 0
_MARKUP = re.compile(r"@(url|section|source):([^@\n]*)@")


def read_rules(result: Any, allowance: Allowance) -> tuple[RuleResult, ...]:
    """Decode the rule results of a launch.

    Until 2023.1 optimization advice has kind ``warning``; ``optimization``, speedups and markers exist from 2023.2 on.
    """
    return tuple(_read_rule(rule, allowance) for rule in allowance.decode(Rule, result.rules))


def _read_rule(rule: Any, allowance: Allowance) -> RuleResult:
    items = list(allowance.decode(RuleItem, rule.body.items))
    return RuleResult(
        identifier=read_text(rule.identifier),
        name=read_text(rule.name),
        section=read_text(rule.section),
        messages=tuple(_read_message(item.message) for item in items if item.HasField("message")),
        speedups=tuple(
            RuleSpeedup(percent=item.speedup.percent, is_global=item.speedup.scope == _GLOBAL_SCOPE)
            for item in items
            if item.HasField("speedup")
        ),
        markers=tuple(_read_marker(marker) for marker in allowance.decode(RuleMarker, rule.markers)),
    )


def strip_markup(text: str) -> str:
    """Replace the profiler's links by the words they show.

    >>> strip_markup("see the @section:Occupancy:Occupancy@ section or the @url:guide:https://example.org/a#b@")
    'see the Occupancy section or the guide'
    >>> strip_markup("@source:a.cu:15:a.cu, line 16@ of a@b.c")
    'a.cu, line 16 of a@b.c'
    """
    return _MARKUP.sub(lambda match: _show_link(match[1], match[2]), text)


def _show_link(kind: str, content: str) -> str:
    # A url link is text:address, a section link identifier:text, a source link position:text (the position may itself have colons).
    if kind == "url":
        return content.partition(":")[0]
    if kind == "section":
        return content.partition(":")[2] or content
    return content.rpartition(":")[2]


def _read_kind(number: int) -> MessageKind:
    return _KINDS[number] if number < len(_KINDS) else "info"


def _read_message(message: Any) -> RuleMessage:
    return RuleMessage(
        kind=_read_kind(message.kind),
        title=strip_markup(read_text(message.title)),
        text=strip_markup(read_text(message.text)).strip(),
    )


def _read_marker(marker: Any) -> SourceMarker:
    is_instruction = marker.kind == _SASS_MARKER
    return SourceMarker(
        address=marker.address if is_instruction else None,
        file=None if is_instruction else read_text(marker.file),
        line=None if is_instruction else marker.line,
        text=strip_markup(read_text(marker.text)),
        kind=_read_kind(marker.message_kind),
    )
