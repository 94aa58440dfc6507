"""Advice in the notation of fences ``advice`` (:mod:`tests.cases.advice_fence`)."""

from collections.abc import Sequence

from gpa_lsp.diagnosis.advice.model import Advice, Hotspot, KernelAdvice, Region
from gpa_lsp.kernel.scopes import Scope, ScopeKind


def render_advice(found: KernelAdvice, names: Sequence[str]) -> str:
    """Everything the optimizers say, with all a fence can hold.

    Args:
        found: what they say.
        names: of the kernel's instructions.
    """
    lines: list[str] = []
    for advice in found.advice:
        lines.append(f"{_render_numbers(advice.optimizer, advice)} ~ {advice.speedup.bound_reason}")
        for region in advice.regions:
            lines.append(f"    {_render_numbers('region', region)}")
            lines += [
                f"        {render_hotspot(one, names)}{f' ~ {one.note}' if one.note else ''}" for one in region.hotspots
            ]
            lines += [f"        hint ~ {region.hint}"] if region.hint else []
        lines.append(f"    hint ~ {advice.hint}")
        lines += [f"    caveat ~ {caveat}" for caveat in advice.caveats]
        lines += [f"    reason ~ {reason}" for reason in advice.reasons]
    lines += [f"silence {one.optimizer} {one.stage.value} ~ {one.message}" for one in found.silences]
    return "\n".join(lines)


def _render_numbers(name: str, of: Advice | Region) -> str:
    speedup = of.speedup
    parts = [
        f"{name} {speedup.estimate:.3f}x",
        f"bound {speedup.bound:.3f}x",
        f"interval {speedup.low:.3f}-{speedup.high:.3f}",
        f"uncapped {speedup.uncapped:.3f}x",
        f"M={_render_count(of.matched_samples)}/{_render_count(of.matched_latency_samples)}",
        render_scope(of.scope),
    ]
    return "  ".join(parts)


def _render_count(samples: float | None) -> str:
    if samples is None:
        return "?"
    return f"{samples:.0f}" if abs(samples - round(samples)) < 1e-9 else f"{samples:.3f}"


def render_scope(scope: Scope) -> str:
    """A scope: its kind and its place."""
    if scope.kind is ScopeKind.KERNEL:
        return "kernel"
    if scope.file is None or scope.line is None:
        return f"{scope.kind} row {scope.row}"
    last = "" if scope.last_line in (None, scope.line) else f"-{scope.last_line}"
    function = f"{scope.function}@" if scope.kind in (ScopeKind.CALL, ScopeKind.INLINED) else ""
    return f"{scope.kind} {function}{scope.file}:{scope.line}{last}"


def render_hotspot(hotspot: Hotspot, names: Sequence[str]) -> str:
    """A hotspot without its note."""
    use_row = hotspot.def_row if hotspot.use_row is None else hotspot.use_row
    parts = [
        names[use_row],
        "<-",
        "itself" if hotspot.use_row is None else names[hotspot.def_row],
        f"{hotspot.reason}={_render_count(hotspot.samples)}/{_render_count(hotspot.latency_samples)}",
        hotspot.operand,
        _render_distance(hotspot),
        None if hotspot.is_separable else "[together]",
    ]
    return " ".join(part for part in parts if part)


def _render_distance(hotspot: Hotspot) -> str:
    counts = ((hotspot.distance_instructions, "instruction"), (hotspot.distance_cycles, "cycle"))
    return ", ".join(f"{number} {unit}{'' if number == 1 else 's'}" for number, unit in counts if number is not None)
