"""Floating-point data that would move half the bytes in a narrower type."""

from gpa_lsp.diagnosis.advice.matches import EliminationMatch
from gpa_lsp.diagnosis.advice.narrower_data import (
    SHARED_ARRAYS,
    Value,
    explain_no_traffic,
    find_narrower_data,
    name_places,
)
from gpa_lsp.diagnosis.advice.optimizers import Found, Optimizer
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.foundation.prose import count, say

_NARROWER = {Value.DOUBLE: "float", Value.SINGLE: "__half or __nv_bfloat16"}
_BITS = {
    Value.DOUBLE: "FP32 keeps 24 significant bits, FP64 53",
    Value.SINGLE: "FP16 keeps 11 significant bits, BF16 8, FP32 24",
}


def match(subject: Subject) -> Found:
    """A kernel that DRAM or L2 limits runs faster when its floating-point data takes fewer bytes.

    Matched: global loads whose values floating-point arithmetic reads, and stores of what it made, FP64 before FP32. Half of the sectors that their
    data fills go. Arithmetic stays as it is; what FP64 costs there is :mod:`~gpa_lsp.diagnosis.advice.optimizers.strength_reduction`'s to say.

    Source: Starlight, Table 1 ("Reduce Operation Precision"), and section 4.4, which suggests it on the memory side alone.
    """
    why = explain_no_traffic(subject)
    if why is not None:
        return why
    for value, least_bytes in ((Value.DOUBLE, 8), (Value.SINGLE, 4)):
        data = find_narrower_data(subject, (value,), least_bytes)
        if data is not None:
            break
    else:
        return say("no global access moves FP64 or FP32 values that arithmetic reads or made")
    return EliminationMatch(
        regions=data.regions,
        work=data.left,
        hint=say(
            "Store the {type} data of {places} as {narrower}, and convert it in registers: half the bytes.",
            type=value.value,
            places=name_places(subject, data.rows),
            narrower=_NARROWER[value],
        ),
        caveats=(
            say("{bits}; check the results.", bits=_BITS[value]),
            SHARED_ARRAYS,
        ),
        reasons=(say("{rows} with {type} values", rows=count(len(data.rows), "global access"), type=value.value),),
    )


OPTIMIZER = Optimizer(
    name="lower_precision",
    title="Store data with lower precision",
    group="data width",
    needs_samples=False,
    is_outside=True,  # Other kernels and the host read and write the same arrays
    find=match,
)
