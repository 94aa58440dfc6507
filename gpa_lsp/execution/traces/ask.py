"""Ask every question about one traced launch: :func:`answer_questions`."""

from collections.abc import Mapping
from functools import cache

import gpa_lsp.execution.traces.questions as catalogue
from gpa_lsp.diagnosis.analyses.answers import Answer, Table, list_columns
from gpa_lsp.execution.traces.questions import TraceQuestion
from gpa_lsp.execution.traces.results import MeasureSpread, TraceAnalyses
from gpa_lsp.foundation.catalogue import load_catalogue
from gpa_lsp.foundation.errors import Problem
from gpa_lsp.foundation.numbers import Cell, Quantity
from gpa_lsp.foundation.prose import Amount, count, say


@cache
def list_questions() -> Mapping[str, TraceQuestion]:
    """All questions by name, in the order to be read."""
    subjects: dict[str, dict[str, TraceQuestion]] = load_catalogue(catalogue, "QUESTIONS", dict)
    found = [item for questions in subjects.values() for item in questions.items()]
    return dict(sorted(found, key=lambda item: (item[1].order, item[0])))


def answer_questions(analyses: TraceAnalyses) -> tuple[tuple[Answer, ...], tuple[Problem, ...]]:
    """One answer per question; one that fails becomes a problem, and the others go on."""
    answers: list[Answer] = []
    problems: list[Problem] = []
    for name, question in list_questions().items():
        try:
            answers.append(question.answer(analyses))
        except Exception as error:  # a broken question must not cost the others; tests raise it again
            problems.append(Problem.from_fault(f"the question {name}", error, kernel=analyses.kernel))
    return tuple(answers), tuple(problems)


def answer_launches(spreads: tuple[MeasureSpread, ...], launches: int, origin: str) -> Answer:
    """Answer how the measures of a kernel differ between launches.

    Args:
        spreads: of :func:`~gpa_lsp.execution.traces.results.spread_listed`.
    """
    rows: list[tuple[Cell, ...]] = []
    for one in spreads:
        unit = "" if one.quantity is not Quantity.RATIO else " (parts of 1)"
        rows.append((f"{one.measure}{unit}", one.mean, one.least, one.most, one.deviation))
    varying = max(spreads, key=lambda one: one.deviation / abs(one.mean) if one.mean else 0.0, default=None)
    summary = say("The {launches} do not differ.", launches=count(launches, "launch"))
    if varying is not None and varying.deviation > 0:
        quantity = Quantity.RATIO if varying.quantity is Quantity.RATIO else Quantity.NUMBER
        summary = say(
            "Over {launches}, “{measure}” varies most: {least} to {most}.",
            launches=count(launches, "launch"),
            measure=varying.measure,
            least=Amount(value=varying.least, quantity=quantity),
            most=Amount(value=varying.most, quantity=quantity),
        )
    return Answer(
        analysis="traced_launches",
        title=f"Launches compared ({origin})",
        summary=summary,
        tables=(
            Table(
                title="Measures",
                columns=list_columns("measure | mean [number] | least [number] | most [number] | deviation [number]"),
                rows=tuple(rows),
            ),
        )
        if rows
        else (),
        is_known=bool(rows),
    )
