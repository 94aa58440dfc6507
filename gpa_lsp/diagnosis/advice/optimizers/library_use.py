"""Kernels of libraries: what a user can change is how the library is called."""

from collections.abc import Iterator
from math import inf

from gpa_lsp.diagnosis.advice.matches import Remark
from gpa_lsp.diagnosis.advice.model import LIBRARY_USE, Category
from gpa_lsp.diagnosis.advice.optimizers import Found, Optimizer
from gpa_lsp.diagnosis.analyses.limiter import SHORT_LAUNCH_NS, find_limiter
from gpa_lsp.diagnosis.analyses.model import Limiter, LimiterKind
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.foundation.prose import NOTHING, Sentence, begin_lower, capitalize, count, duration, say

_MATRIX_LIBRARIES = frozenset({"cuBLAS", "cuDNN", "CUTLASS"})
_MEMORY_UNITS = frozenset({"dram", "l2", "l2_slice", "memory"})


def match(subject: Subject) -> Found:
    """The code is not the user's: larger calls, fewer of them, another type or layout, or a newer version help, as launch and limiter suggest.

    Without a number, for the library's code is not modelled.
    """
    library = subject.kernel.library
    if not library:
        return say("no library is known that the kernel belongs to")
    parts = (*_suggest_size(subject), _suggest_for_limiter(library, find_limiter(subject)))
    first = next((part for part in parts if part), say("give it more work per call"))
    version = say("or try a newer version of {library}", library=library)
    hint = say("{what}, {version}.", what=capitalize(first), version=version)
    return Remark(hint=hint, bound=inf, doubt=say("gain unknown"))


def _suggest_size(subject: Subject) -> Iterator[Sentence]:
    """Suggest other launch sizes: the grid leaves SMs idle, or the launch is short."""
    launch = subject.launch
    if launch is None:
        return
    if subject.sm_count is not None and 0 < launch.blocks < subject.sm_count:
        yield say(
            "batch calls or pass larger inputs: {blocks} leave {idle} of {every} idle",
            blocks=count(launch.blocks, "block"),
            idle=count(subject.sm_count - launch.blocks),
            every=count(subject.sm_count, "SM"),
        )
    elif (time_ns := subject.metric("gpu__time_duration.sum")) is not None and time_ns < SHORT_LAUNCH_NS:
        time = duration(time_ns)
        fused = "fuse it with its neighbours (torch.compile)" if subject.kernel.library == "PyTorch" else "batch calls"
        yield say("{fused}, or launch it from a CUDA graph: it runs for {time} only", fused=fused, time=time)


def _suggest_for_limiter(library: str, limiter: Limiter) -> Sentence:
    """Suggest how to take work from the limiter from outside; empty where nothing is known to."""
    if limiter.kind is LimiterKind.UNIT and limiter.unit in _MEMORY_UNITS:
        if library == "PyTorch":
            return say(
                "fuse it with neighbouring operations (torch.compile), so that data is read once, or use a narrower type"
            )
        return say(
            "use a narrower data type, or a layout that it need not transpose or pad: it is limited by memory traffic"
        )
    if limiter.kind is LimiterKind.UNIT and limiter.unit == "fma" and library in _MATRIX_LIBRARIES:
        return say(
            "allow TF32, BF16 or FP16 where the accuracy suffices, so that {library} uses tensor cores", library=library
        )
    if limiter.kind is LimiterKind.UNIT and limiter.unit == "fp64":
        return say("use FP32 where the accuracy suffices: it is limited by FP64 arithmetic")
    first = limiter.find(limiter.unit)
    if limiter.kind is LimiterKind.UNIT and first is not None:
        label = begin_lower(first.label)
        return say("ask it for less work, or for a narrower data type: it is limited by {label}", label=label)
    return NOTHING


OPTIMIZER = Optimizer(
    name=LIBRARY_USE,
    title="Use the library differently",
    category=Category.CALLS,
    group="library",
    needs_samples=False,
    needs_code=False,
    find=match,
)
