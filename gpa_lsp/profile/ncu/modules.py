"""Loaded modules: embedded cubins, function tables and imported source files."""

from typing import Any

from gpa_lsp.profile.model import LoadedFunction, Module
from gpa_lsp.profile.ncu.schema import read_text

ModuleKey = tuple[int | None, int]
"""Process id (None when not stored) and source id: ids are handles of one process, and a report may hold several processes."""


class ModuleTable:
    """Collects source entries; several entries of one id describe one module and are merged.

    Later entries of an id usually bring only further functions (those of kernels first launched later) and no image.
    """

    def __init__(self) -> None:
        self._entries: dict[ModuleKey, list[Any]] = {}

    def add(self, process_id: int | None, source: Any) -> None:
        """Take a decoded source entry."""
        self._entries.setdefault((process_id, source.source_id), []).append(source)

    def build(self) -> tuple[dict[int, Module], dict[ModuleKey, int], list[str]]:
        """Merge.

        Returns:
            The modules by id (the source id; a fresh number where two processes use the same one), the id of each key, and a sentence for
            everything that was not as it should be.
        """
        modules: dict[int, Module] = {}
        ids: dict[ModuleKey, int] = {}
        problems: list[str] = []
        for key, entries in self._entries.items():
            module_id = key[1] if key[1] not in modules else max(modules) + 1
            ids[key] = module_id
            images = list(dict.fromkeys(entry.image for entry in entries if entry.image))
            if len(images) > 1:
                problems.append(f"module {module_id} comes with {len(images)} different images; the first is used")
            modules[module_id] = Module(
                module_id=module_id,
                image=images[0] if images else None,
                compute_capability=_read_capability(entries),
                functions=_merge_functions(entries),
                sources=_merge_sources(entries),
            )
        return modules, ids, problems


def _read_capability(entries: list[Any]) -> tuple[int, int] | None:
    """(major, minor) from the packed field, ``major << 16 | minor``; the major-only field cannot tell the minor."""
    for entry in entries:
        packed = entry.compute_capability_packed
        if packed:
            return packed >> 16, packed & 0xFFFF
    return None


def _merge_functions(entries: list[Any]) -> tuple[LoadedFunction, ...]:
    """All functions of all entries, ascending by address, each place and name once."""
    found: dict[tuple[int, str], LoadedFunction] = {}
    for entry in entries:
        for symbol in entry.addresses.functions:
            if not symbol.HasField("address"):
                continue
            name = read_text(symbol.name)
            index = symbol.symbol_index if symbol.HasField("symbol_index") else None
            function = LoadedFunction(name=name, address=symbol.address, symbol_index=index)
            found.setdefault((symbol.address, name), function)
    return tuple(found[key] for key in sorted(found))


def _merge_sources(entries: list[Any]) -> dict[str, str]:
    sources: dict[str, str] = {}
    for entry in entries:
        for file in entry.files.files:
            sources.setdefault(read_text(file.path), read_text(file.content))
    return sources
