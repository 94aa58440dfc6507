"""The profiler's two throughputs and the members it lists for them."""

from gpa_lsp.profile.model import Launch

SM_THROUGHPUT, MEMORY_THROUGHPUT = "sm__throughput", "gpu__compute_memory_throughput"

# Suffix of a unit's share of its peak, in percent, over all of the launch
ELAPSED_SHARE = ".avg.pct_of_peak_sustained_elapsed"


def list_members(launch: Launch, throughput: str) -> tuple[str, ...]:
    """Names without suffix of the units whose largest share a throughput is; empty when the report does not list them."""
    listed = launch.metrics.get(f"breakdown:{throughput}{ELAPSED_SHARE}")
    if listed is None or not isinstance(listed.value, str):
        return ()
    names = (name.strip() for name in listed.value.split(","))
    return tuple(dict.fromkeys(name.removesuffix(ELAPSED_SHARE) for name in names if name.endswith(ELAPSED_SHARE)))
