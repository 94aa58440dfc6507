"""Resources and occupancy of a compiled kernel in a few words, the same in every view."""

from gpa_lsp.analyses.static.model import BlockOrigin, KernelStatics, KnownBlock
from gpa_lsp.basis.numbers import format_percent

_ORIGIN_WORDS = {
    BlockOrigin.REQUIRED: "the size the kernel requires",
    BlockOrigin.PROFILE: "as measured",
    BlockOrigin.DESCRIPTION: "as the launch description says",
    BlockOrigin.SOURCE: "as launched in line {line}",
    BlockOrigin.BOUND: "the launch bound",
}
_KIBIBYTE = 1024


def describe_resources(statics: KernelStatics) -> str:
    """``64 registers · 2 KiB shared · occupancy 50 % (registers)``: what a lens says.

    Without a block size the best occupancy that any size reaches stands there, with that size.
    """
    parts = [] if statics.registers is None else [_count(statics.registers, "register")]
    if statics.shared_static_bytes:
        parts.append(f"{write_bytes(statics.shared_static_bytes)} shared")
    if statics.spill_bytes:
        parts.append(f"{write_bytes(statics.spill_bytes)} spilled")
    if statics.occupancy is not None:
        parts.append(_begin_small(describe_occupancy(statics)))
    elif statics.by_block:
        best = max(statics.by_block, key=lambda one: (one.occupancy.ratio, -one.threads))
        ratio = format_percent(best.occupancy.ratio)
        parts.append(f"occupancy up to {ratio} (blocks of {best.threads:,})")
    return " · ".join(parts)


def describe_occupancy(statics: KernelStatics) -> str:
    """``Occupancy 50 % (registers)``; empty where no block size is known."""
    occupancy = statics.occupancy
    if occupancy is None:
        return ""
    if not occupancy.blocks_per_sm:
        reasons = ", ".join(limit.value for limit in occupancy.limiters)
        return f"No block fits ({reasons})" if reasons else "No block fits"
    limits = f" ({', '.join(limit.value for limit in occupancy.limiters)})" if occupancy.limiters else ""
    return f"Occupancy {format_percent(occupancy.ratio)}{limits}"


def describe_block(block: KnownBlock) -> str:
    """``blocks of 256 threads (as launched in line 40)``."""
    words = _ORIGIN_WORDS[block.origin]
    if block.origin is BlockOrigin.SOURCE:
        words = words.format(line=block.line) if block.line is not None else "as launched in the source"
    shared = f" with {write_bytes(block.dynamic_shared_bytes)} of shared memory" if block.dynamic_shared_bytes else ""
    return f"blocks of {_count(block.threads, 'thread')}{shared} ({words})"


def write_bytes(size_bytes: int) -> str:
    """Bytes in units of 1,024 where that loses nothing.

    >>> write_bytes(2048), write_bytes(100), write_bytes(1536)
    ('2 KiB', '100 B', '1.5 KiB')
    """
    if size_bytes < _KIBIBYTE:
        return f"{size_bytes:,} B"
    return f"{size_bytes / _KIBIBYTE:,.1f} KiB".replace(".0 KiB", " KiB")


def _count(number: int, thing: str) -> str:
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def _begin_small(words: str) -> str:
    return words[:1].lower() + words[1:]
