"""Loops unrolled so far that their code no longer fits the instruction caches."""

import numpy as np
import numpy.typing as npt

from gpa_lsp.code.sources.trees import find_language
from gpa_lsp.diagnosis.advice.blamed_stalls import build_region, rank_regions
from gpa_lsp.diagnosis.advice.code_size import (
    InstructionCaches,
    count_called_bytes,
    count_scope_bytes,
    find_fetch_edges,
    find_instruction_caches,
)
from gpa_lsp.diagnosis.advice.matches import EliminationMatch
from gpa_lsp.diagnosis.advice.naming import describe_scope
from gpa_lsp.diagnosis.advice.optimizers import Found, Optimizer
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.foundation.prose import NOTHING, Code, Sentence, capitalize, count, say, size
from gpa_lsp.kernel.dataflow.unrolling import find_unrolling
from gpa_lsp.kernel.scopes import Scope

_PRAGMAS = {"cuda": "#pragma unroll {copies}"}


def match(subject: Subject) -> Found:
    """Instruction fetches that a loop with fewer copies of its body would not wait for.

    Matched: samples without an instruction to issue, inside a loop whose code is larger than a sub-partition's instruction cache and holds
    several copies of its body. Fetch stalls of smaller loops come from jumps and cold code, which unrolling does not change.
    Approximation: all of them go; the caches beyond the first are taken as no help.

    Source: GPA's code (LoopNoUnroll: instruction fetch stalls in loops), with the sizes it leaves out.
    """
    edges = find_fetch_edges(subject)
    if len(edges) == 0:
        return say("no warp is stalled on instruction fetch")
    caches = find_instruction_caches(subject.kernel.architecture)
    by_loop = _group_by_loop(subject, edges)
    sizes = count_scope_bytes(subject)
    regions = []
    largest = 0
    left = set(edges.tolist())
    # Innermost loops first: their samples are no part of the loops around them.
    for loop in sorted(by_loop, reverse=True):
        inside = sorted(left.intersection(by_loop[loop]))
        code_bytes = int(sizes[loop]) + count_called_bytes(subject, subject.scopes.rows_of(loop))
        largest = max(largest, code_bytes)
        copies = find_unrolling(subject.rows, loop).repeats if inside and code_bytes > caches.first_bytes else 1
        if copies > 1:
            left.difference_update(inside)
            scope = subject.scopes.scopes[loop]
            hint = _advise(scope, describe_scope(subject, scope), code_bytes, copies, caches)
            regions.append(build_region(subject, scope, np.array(inside, dtype=np.int64), hint=hint))
    if not regions:
        return _explain(largest, caches)
    ranked = rank_regions(regions)
    return EliminationMatch(
        regions=ranked,
        hint=ranked[0].hint,
        caveats=(say("A smaller unroll factor means more branches and less overlap between iterations."),),
        reasons=(_describe_caches(caches),),
    )


def _explain(largest: int, caches: InstructionCaches) -> Sentence:
    if not largest:
        return say("the samples stalled on instruction fetch are in no loop")
    loop = say("the largest loop stalled on instruction fetch is {code} of code", code=size(largest))
    if largest > caches.first_bytes:
        return say("{loop}, but is not unrolled", loop=loop)
    return say("{loop}, and the L0 instruction cache holds {first}", loop=loop, first=size(caches.first_bytes))


def _group_by_loop(subject: Subject, edges: npt.NDArray[np.int64]) -> dict[int, list[int]]:
    """Loop → the blamed pairs whose def is in it, inner loops included."""
    found: dict[int, list[int]] = {}
    for edge in edges.tolist():
        innermost = int(subject.scopes.innermost[subject.edges.def_row[edge]])
        for scope in subject.scopes.around(innermost):
            if subject.scopes.is_loop[scope]:
                found.setdefault(scope, []).append(edge)
    return found


def _advise(scope: Scope, loop: Sentence, code_bytes: int, copies: int, caches: InstructionCaches) -> Sentence:
    """Advise on one loop, with the unroll factor that would fit."""
    # Powers of two divide most trip counts, so that no remainder loop is needed.
    fitting = 1 << max(0, (caches.first_bytes * copies // code_bytes).bit_length() - 1)
    language = find_language(scope.file) if scope.file else None
    pragma = _PRAGMAS.get(language.name) if language is not None else None
    return say(
        "{loop} is {code} of code at unroll factor {copies}, and the L0 instruction cache holds {first}. "
        "Unroll by about {fitting} instead{pragma}, so that it fits.",
        loop=capitalize(loop),
        code=size(code_bytes),
        copies=count(copies),
        first=size(caches.first_bytes),
        fitting=count(fitting),
        pragma=say(" ({pragma})", pragma=Code(text=pragma.format(copies=fitting))) if pragma else NOTHING,
    )


def _describe_caches(caches: InstructionCaches) -> Sentence:
    trust = "measured" if caches.is_measured else "assumed, not measured on this architecture"
    return say("an L0 instruction cache of {first} ({trust})", first=size(caches.first_bytes), trust=trust)


OPTIMIZER = Optimizer(
    name="excessive_unrolling",
    title="Unroll less",
    group="instruction supply",
    find=match,
)
