"""Loaded modules: embedded cubins, function tables and imported source files."""

from typing import Any

from gpa_lsp.profile.model import LoadedFunction, Module
from gpa_lsp.profile.ncu.allowance import Allowance
from gpa_lsp.profile.ncu.schema import SourceFile, Symbol, read_text

ModuleKey = tuple[int | None, int]
"""Process id (None when not stored) and source id: ids are handles of one process, and a report may hold several processes."""


class ModuleTable:
    """Collects source entries; several entries of one id describe one module and are merged.

    Later entries of an id usually bring only further functions (those of kernels first launched later) and no image.
    """

    def __init__(self) -> None:
        self._entries: dict[ModuleKey, list[Any]] = {}
        self._size_bytes: dict[ModuleKey, int] = {}

    def add(self, process_id: int | None, source: Any, size_bytes: int) -> None:
        """Take a decoded source entry; ``size_bytes`` is what it takes in the file."""
        key = process_id, source.source_id
        self._entries.setdefault(key, []).append(source)
        self._size_bytes[key] = self._size_bytes.get(key, 0) + size_bytes

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
            allowance = Allowance(self._size_bytes[key])
            modules[module_id] = Module(
                module_id=module_id,
                image=images[0] if images else None,
                compute_capability=_read_capability(entries),
                functions=_merge_functions(entries, allowance),
                sources=_merge_sources(entries, allowance),
            )
            problems += [f"module {module_id}: {message}" for message in allowance.describe()]
        return modules, ids, problems


def _read_capability(entries: list[Any]) -> tuple[int, int] | None:
    """(major, minor) from the packed field, ``major << 16 | minor``; the major-only field cannot tell the minor."""
    for entry in entries:
        packed = entry.compute_capability_packed
        if packed:
            return packed >> 16, packed & 0xFFFF
    return None


def _merge_functions(entries: list[Any], allowance: Allowance) -> tuple[LoadedFunction, ...]:
    """All functions of all entries, ascending by address, each place and name once."""
    found: dict[tuple[int, str], LoadedFunction] = {}
    for entry in entries:
        for symbol in allowance.decode(Symbol, entry.addresses.functions):
            if not symbol.HasField("address"):
                continue
            name = read_text(symbol.name)
            index = symbol.symbol_index if symbol.HasField("symbol_index") else None
            function = LoadedFunction(name=name, address=symbol.address, symbol_index=index)
            found.setdefault((symbol.address, name), function)
    return tuple(found[key] for key in sorted(found))


def _merge_sources(entries: list[Any], allowance: Allowance) -> dict[str, str]:
    sources: dict[str, str] = {}
    for entry in entries:
        for file in allowance.decode(SourceFile, entry.files.files, is_flat=True):
            sources.setdefault(read_text(file.path), read_text(file.content))
    return sources
