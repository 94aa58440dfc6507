"""The analyses: each file defines ``ANALYSIS``, one question. Adding a file adds a question."""

from collections.abc import Callable

from msgspec import Struct
from msgspec.structs import replace

from gpa_lsp.diagnosis.analyses.answers import Answer
from gpa_lsp.diagnosis.analyses.subject import Subject


class Analysis(Struct, frozen=True, kw_only=True):
    """One question."""

    name: str  # in snake case, the module's name
    title: str = ""  # the question in a few words, for headings; an answer may bring a title of its own
    order: int  # answers are read by ascending order
    answer: Callable[[Subject], Answer]  # asks it; never raises for what a kernel lacks, but says so in the answer

    def ask(self, subject: Subject) -> Answer:
        """The answer, with the question's name and title, and without tables that have no rows."""
        answer = self.answer(subject)
        tables = tuple(table for table in answer.tables if table.rows)
        return replace(answer, analysis=answer.analysis or self.name, title=answer.title or self.title, tables=tables)
