"""What every stall reason comes from: which instructions, which pipe, which barrier, which function.

Samples of a reason are shared out among its sources by :mod:`~gpa_lsp.diagnosis.analyses.decomposition.stall_split`, and add up to it. Queues and
pipes are
looked into by :mod:`~gpa_lsp.diagnosis.analyses.decomposition.queue_pressure` and :mod:`~gpa_lsp.diagnosis.analyses.decomposition.unit_use`.

Source: after DrGPU (Hao et al., ICPE 2023), the children of its stall nodes; the producers behind scoreboards are blame's.
"""

from gpa_lsp.diagnosis.analyses.answers import Answer
from gpa_lsp.diagnosis.analyses.decomposition.sources_answer import write_sources_answer
from gpa_lsp.diagnosis.analyses.facts import KernelFacts
from gpa_lsp.diagnosis.analyses.questions import Analysis


def answer(facts: KernelFacts) -> Answer:
    """What every stall reason comes from."""
    return write_sources_answer(facts, ANALYSIS.name)


ANALYSIS = Analysis(name="stall_sources", order=70, answer=answer)
