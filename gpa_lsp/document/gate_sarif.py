"""What a gate says as SARIF 2.1.0: a result per budget that is exceeded, on the line to look at. Rules are the metrics.

Source: as :mod:`gpa_lsp.document.sarif_parts`; section numbers below are of the same standard.
"""

from pathlib import Path

from gpa_lsp.document.gate_words import describe_row, name_gate_kernels
from gpa_lsp.document.places import PlaceNames
from gpa_lsp.document.sarif_parts import Json, SarifParts
from gpa_lsp.foundation.locations import Frame
from gpa_lsp.report.gate.model import GateResult, GateRow, Metric, Outcome
from gpa_lsp.report.model import Report

_FINGERPRINT = "gpaLspGate/v1"


def build_gate_sarif(result: GateResult, report: Report, places: PlaceNames, folder: Path) -> Json:
    """A SARIF log with one run.

    Args:
        result: what was judged.
        report: after the change; its problems become notifications of the run.
        places: where sources are on this machine.
        folder: sources below it get relative URIs.
    """
    parts = SarifParts(places, folder)
    names = name_gate_kernels(result)
    rows = [row for row in result.rows if row.outcome not in (Outcome.KEPT, Outcome.UNKNOWN)]
    rules = list(dict.fromkeys(row.budget.metric for row in rows))
    results = [_make_result(parts, row, rules, names[row.kernel.name]) for row in rows if row.kernel.report is not None]
    return parts.make_log(report, [_make_rule(metric) for metric in rules], results)


def _make_rule(metric: Metric) -> Json:
    """A reportingDescriptor (3.49)."""
    text = f"A budget of the project for the {metric.words} of a kernel is exceeded."
    return {
        "id": f"gate/{metric}",
        "name": "".join(word.capitalize() for word in metric.split("_")),
        "shortDescription": {"text": text},
        "defaultConfiguration": {"level": "error"},
        "properties": {"tags": ["performance", "gpu"]},
    }


def _make_result(parts: SarifParts, row: GateRow, rules: list[Metric], name: str) -> Json:
    kernel, metric = row.kernel.report, row.budget.metric
    assert kernel is not None
    frame = None if row.line is None else Frame(file=row.line.file, line=row.line.line)
    rule = f"gate/{metric}"
    fingerprint = parts.make_fingerprint(kernel, kernel.mangled_name, "" if frame is None else frame.file, rule)
    return {
        "ruleId": rule,
        "ruleIndex": rules.index(metric),
        "level": "error" if row.outcome is Outcome.EXCEEDED else "note",
        "message": {"text": describe_row(row, name)},
        "locations": [parts.make_location(kernel, kernel.mangled_name, frame)],
        "partialFingerprints": {_FINGERPRINT: fingerprint},
        "properties": {
            "metric": metric.value,
            "limit": row.budget.text,
            "outcome": row.outcome.value,
            "origin": None if row.origin is None else row.origin.value,
            "before": row.before,
            "after": row.after,
            "bound": row.bound,
        },
    }
