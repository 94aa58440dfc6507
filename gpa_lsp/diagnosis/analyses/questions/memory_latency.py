"""Where the time of long-scoreboard stalls goes: which level of the memory, latency or queues, which kind of load, which line.

The expected latency of a load without queues is the sum over the levels of the part they answer times the architecture's latency
(:mod:`~gpa_lsp.diagnosis.analyses.decomposition.unloaded_latency`); the measured wait is warp-cycles over executions
(:mod:`~gpa_lsp.diagnosis.analyses.decomposition.load_waits`); the difference is queueing
(:mod:`~gpa_lsp.diagnosis.analyses.decomposition.latency_split`), set down to
the busiest unit on the way. There is no counter of TLB misses, so that these are part of what looks like queueing.

Source: after DrGPU (Hao et al., "DrGPU: A Top-Down Profiler for GPU Applications", ICPE 2023), node ``long_scoreboard``.
"""

from gpa_lsp.diagnosis.analyses.answers import Answer
from gpa_lsp.diagnosis.analyses.decomposition.memory_answer import write_memory_answer
from gpa_lsp.diagnosis.analyses.facts import KernelFacts
from gpa_lsp.diagnosis.analyses.questions import Analysis


def answer(facts: KernelFacts) -> Answer:
    """Where the time goes that warps wait for memory."""
    return write_memory_answer(facts, ANALYSIS.name)


ANALYSIS = Analysis(name="memory_latency", order=60, answer=answer)
