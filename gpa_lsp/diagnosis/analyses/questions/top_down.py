"""The top-down tree: issue slots, the stalls that leave them empty, and what is behind each.

The root is how many of the schedulers' issue slots were used; the first level shares the empty ones out among the stall reasons, the second each
reason among its sources (:mod:`~gpa_lsp.diagnosis.analyses.decomposition.issue_tree`).

Source: after DrGPU (Hao et al., "DrGPU: A Top-Down Profiler for GPU Applications", ICPE 2023): the tree, the cut at 99 %; the shares of empty
slots by samples that were taken while nothing was issued are ours.
"""

from gpa_lsp.diagnosis.analyses.answers import Answer
from gpa_lsp.diagnosis.analyses.decomposition.tree_answer import write_tree_answer
from gpa_lsp.diagnosis.analyses.facts import KernelFacts
from gpa_lsp.diagnosis.analyses.questions import Analysis


def answer(facts: KernelFacts) -> Answer:
    """Where the issue slots go."""
    return write_tree_answer(facts, ANALYSIS.name)


ANALYSIS = Analysis(name="top_down", order=50, answer=answer)
