"""The ``advice`` and ``advice_silences`` of a kernel as JSON values, laid out as ``report_schema.json`` says.

Advice can be read without the rest of the report: where it names an instruction it says function, offset, place and text as well.
"""

from gpa_lsp.advice.model import Advice, Hotspot, Region, Scope, Silence, Speedup, UnitUse
from gpa_lsp.report.json_blame import CATEGORY_NAMES, clamp_ratio, shorten_number
from gpa_lsp.report.json_rows import Json, finite, make_counted_share
from gpa_lsp.report.model import InstructionColumns


def make_advice(advice: Advice, columns: InstructionColumns) -> Json:
    """An ``advice`` object.

    Args:
        advice: of a kernel.
        columns: the kernel's instructions.
    """
    return {
        "optimizer": advice.optimizer,
        "title": advice.title,
        "category": advice.category.value,
        "group": advice.group,
        "speedup": make_speedup(advice.speedup),
        "share": make_counted_share(advice.share),
        "matched_samples": shorten_number(advice.matched_samples),
        "matched_latency_samples": shorten_number(advice.matched_latency_samples),
        "scope": _make_scope(advice.scope, columns),
        "regions": [_make_region(region, columns) for region in advice.regions],
        "hotspots": [_make_hotspot(hotspot, columns) for hotspot in advice.hotspots],
        "hint": advice.hint,
        "caveats": list(advice.caveats),
        "reasons": list(advice.reasons),
        "rank_reason": advice.rank_reason,
    }


def make_silence(silence: Silence) -> Json:
    """A ``silence`` object."""
    return {"optimizer": silence.optimizer, "stage": silence.stage.value, "message": silence.message}


def make_unit(unit: UnitUse) -> Json:
    """A ``unit_use`` object."""
    return {"name": unit.name, "achieved_ratio": unit.achieved_ratio, "ceiling_ratio": unit.ceiling_ratio}


def make_speedup(speedup: Speedup) -> Json:
    """A ``speedup`` object; what has no limit is null."""
    return {
        "estimate": finite(speedup.estimate),
        "low": finite(speedup.low),
        "high": finite(speedup.high),
        "bound": finite(speedup.bound),
        "bound_reason": speedup.bound_reason,
        "uncapped": finite(speedup.uncapped),
    }


def _make_region(region: Region, columns: InstructionColumns) -> Json:
    return {
        "scope": _make_scope(region.scope, columns),
        "matched_samples": shorten_number(region.matched_samples),
        "matched_latency_samples": shorten_number(region.matched_latency_samples),
        "share": make_counted_share(region.share),
        "speedup": make_speedup(region.speedup),
        "density": clamp_ratio(region.density),
        "hotspots": [_make_hotspot(hotspot, columns) for hotspot in region.hotspots],
        "hint": region.hint,
    }


def _make_scope(scope: Scope, columns: InstructionColumns) -> Json:
    known = scope.row < len(columns)
    return {
        "kind": scope.kind.value,
        "function": scope.function,
        "row": scope.row,
        "pc_offset": int(columns.pc_offsets[scope.row]) if known else None,
        "file": scope.file,
        "line": scope.line,
        "last_line": scope.last_line,
    }


def _make_hotspot(hotspot: Hotspot, columns: InstructionColumns) -> Json:
    return {
        "def": _make_place(hotspot.def_row, hotspot.def_loop, columns),
        "use": None if hotspot.use_row is None else _make_place(hotspot.use_row, hotspot.use_loop, columns),
        "reason": hotspot.reason,
        "category": None if hotspot.category is None else CATEGORY_NAMES[int(hotspot.category)],
        "samples": shorten_number(hotspot.samples),
        "latency_samples": shorten_number(hotspot.latency_samples),
        "distance_cycles": hotspot.distance_cycles,
        "distance_instructions": hotspot.distance_instructions,
        "operand": hotspot.operand,
        "is_separable": hotspot.is_separable,
        "note": hotspot.note,
    }


def _make_place(row: int, loop: Scope | None, columns: InstructionColumns) -> Json:
    """An ``instruction_place`` object. Its frames go without function names, which take two kilobytes each in template libraries."""
    chain = int(columns.chain_index[row])
    frames = columns.chains[chain] if chain >= 0 else ()
    return {
        "row": row,
        "function": columns.functions[columns.function_index[row]],
        "pc_offset": int(columns.pc_offsets[row]),
        "text": columns.texts[row],
        "file": frames[0].file if frames else None,
        "line": frames[0].line if frames else None,
        "inline": [{"file": frame.file, "line": frame.line} for frame in frames],
        "loop": None if loop is None else _make_scope(loop, columns),
    }
