"""Rule results of a native profile: what another profiler's rules said, kept word for word."""

from gpa_lsp.profile.model import (
    FocusMetric,
    RuleMessage,
    RuleResult,
    RuleSpeedup,
    RuleTable,
    RuleTableColumn,
    SourceMarker,
)
from gpa_lsp.profile.native.elements import Element

KINDS = ("ok", "info", "warning", "error", "optimization")
_MEMBERS = (
    "identifier",
    "name",
    "section",
    "messages",
    "speedups",
    "focus_metrics",
    "markers",
    "source_metrics",
    "tables",
)


def read_rules(element: Element | None) -> tuple[RuleResult, ...]:
    """The ``rules`` member."""
    return tuple(_read_rule(item) for item in element.read_items()) if element is not None else ()


def _read_rule(element: Element) -> RuleResult:
    members = element.read_members(_MEMBERS, ("identifier",))

    def items(name: str) -> list[Element]:
        return members[name].read_items() if name in members else []

    return RuleResult(
        identifier=members["identifier"].read_text(),
        name=members["name"].read_text() if "name" in members else "",
        section=members["section"].read_text() if "section" in members else "",
        messages=tuple(_read_message(item) for item in items("messages")),
        speedups=tuple(_read_speedup(item) for item in items("speedups")),
        focus_metrics=tuple(_read_focus(item) for item in items("focus_metrics")),
        markers=tuple(_read_marker(item) for item in items("markers")),
        source_metrics=tuple(item.read_text() for item in items("source_metrics")),
        tables=tuple(_read_table(item) for item in items("tables")),
    )


def _read_message(element: Element) -> RuleMessage:
    members = element.read_members(("kind", "title", "text"), ("kind", "text"))
    return RuleMessage(
        kind=members["kind"].read_choice(KINDS),
        title=members["title"].read_text() if "title" in members else "",
        text=members["text"].read_text(),
    )


def _read_speedup(element: Element) -> RuleSpeedup:
    members = element.read_members(("percent", "is_global"), ("percent", "is_global"))
    return RuleSpeedup(percent=members["percent"].read_float(), is_global=members["is_global"].read_flag())


def _read_focus(element: Element) -> FocusMetric:
    members = element.read_members(("name", "value", "severity", "advice"), ("name", "value"))
    return FocusMetric(
        name=members["name"].read_text(),
        value=members["value"].read_float(),
        severity=members["severity"].read_integer() if "severity" in members else 0,
        advice=members["advice"].read_text() if "advice" in members else "",
    )


def _read_marker(element: Element) -> SourceMarker:
    members = element.read_members(("address", "file", "line", "text", "kind"), ("text", "kind"))
    return SourceMarker(
        address=members["address"].read_address() if "address" in members else None,
        file=members["file"].read_text() if "file" in members else None,
        line=members["line"].read_integer() if "line" in members else None,
        text=members["text"].read_text(),
        kind=members["kind"].read_choice(KINDS),
    )


def _read_table(element: Element) -> RuleTable:
    members = element.read_members(("title", "description", "columns"), ("columns",))
    columns = [item.read_members(("name", "values"), ("name", "values")) for item in members["columns"].read_items()]
    return RuleTable(
        title=members["title"].read_text() if "title" in members else "",
        description=members["description"].read_text() if "description" in members else "",
        columns=tuple(
            RuleTableColumn(
                name=column["name"].read_text(),
                values=tuple(_read_cell(item) for item in column["values"].read_items()),
            )
            for column in columns
        ),
    )


def _read_cell(element: Element) -> float | str:
    return element.read_text() if isinstance(element.value, str) else element.read_float()
