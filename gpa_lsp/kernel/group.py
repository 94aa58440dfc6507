"""Which launches are launches of the same kernel."""

from collections.abc import Iterable

from gpa_lsp.profile.model import Launch

GroupKey = tuple[str, int | None, str | None, tuple[int, int] | None]


def group_launches(launches: Iterable[Launch]) -> tuple[tuple[Launch, ...], ...]:
    """Launches by kernel: same linkage name, same loaded module, same kind of GPU.

    Launch configurations may differ within a group: the code is the same, and so are the lines; figures per launch stay apart.

    Returns:
        Groups in the order of their first launch; launches in profile order within.
    """
    groups: dict[GroupKey, list[Launch]] = {}
    for launch in launches:
        key = (launch.mangled_name, launch.module_id, launch.device.name, launch.device.compute_capability)
        groups.setdefault(key, []).append(launch)
    return tuple(tuple(group) for group in groups.values())
