"""All analyses of a trace at once."""

from collections.abc import Iterable

from gpa_lsp.execution.emulator.model import Trace
from gpa_lsp.execution.traces.ask import TraceAnalyser
from gpa_lsp.execution.traces.model import AnalysisSettings, TraceContext
from gpa_lsp.execution.traces.results import TraceAnalyses
from gpa_lsp.foundation.locations import InlineChain

_DEFAULTS = AnalysisSettings()


def analyse_trace(
    trace: Trace | Iterable[Trace],
    *,
    context: TraceContext,
    settings: AnalysisSettings = _DEFAULTS,
    block_chains: tuple[InlineChain | None, ...] = (),
) -> TraceAnalyses:
    """All analyses of one launch.

    Args:
        trace: a trace, or pieces of one that hold whole blocks.
        context: the GPU it is thought to run on.
        settings: what is asked, and how much is looked at.
        block_chains: lines of basic blocks, if there are to be any.

    Raises:
        InputError: the trace is empty of pieces, of several launches, or its rows do not lead anywhere.
    """
    analyser = TraceAnalyser(context, settings, block_chains=block_chains)
    for piece in (trace,) if isinstance(trace, Trace) else trace:
        analyser.add(piece)
    return analyser.finish()
