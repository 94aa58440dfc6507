"""Why a command failed and what to do about it, looked up in ``explanations.toml``."""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import tomli
from msgspec import Struct
from msgspec.structs import replace

from gpa_lsp.foundation.numbers import format_seconds
from gpa_lsp.foundation.processes.signals import name_signal
from gpa_lsp.foundation.processes.watched_command import Ending
from gpa_lsp.profile.collect.model import CommandResult, Explanation, Phase

_SHELL_SIGNALS = 128  # Shells, and programs that start others, add it to the number of the signal that ended a command

_HIGHEST_SIGNAL = 64


class CatalogueEntry(Struct, frozen=True, kw_only=True):
    """One entry of the catalogue; what its fields mean stands at the head of the file."""

    name: str
    summary: str
    remedies: tuple[str, ...]
    printed: re.Pattern[str] | None
    status: int | None
    programs: frozenset[str]
    although_well: bool
    url: str | None

    def apply(self, result: CommandResult, program: str) -> Explanation | None:
        """The explanation, where this entry is one."""
        if result.is_success and not self.although_well:
            return None
        if self.printed is None:
            applies = result.status == self.status and (not self.programs or program in self.programs)
            return self._explain({}, None) if applies else None
        for line in result.tail:
            if (match := self.printed.search(line)) is not None:
                return self._explain(match.groupdict(), line)
        return None

    def _explain(self, groups: Mapping[str, str | None], line: str | None) -> Explanation:
        name = groups.get("name") or groups.get("other") or ""
        summary = self.summary.replace("{name}", name)
        return Explanation(name=self.name, summary=summary, remedies=self.remedies, line=line, url=self.url)


def explain(
    result: CommandResult, *, program: str, phase: Phase = Phase.PROFILE, timeout_s: float | None = None
) -> Explanation | None:
    """Why a command failed, or measured nothing although it ended well.

    Args:
        result: what became of it.
        program: its program, with or without folder.
        phase: what it was run for.
        timeout_s: the time it was given.

    Returns:
        The explanation; None for a command that was cancelled, and for one that ended well and printed nothing that says otherwise.
    """
    if result.ending is Ending.CANCELLED:
        return None
    if result.ending is Ending.TIMED_OUT:
        return _explain_timeout(phase, timeout_s)
    if result.ending is Ending.LOST:
        return Explanation(
            name="lost", summary="the process that watches over the command was killed, and the command with it"
        )
    base = re.split(r"[/\\]", program)[-1].removesuffix(".exe")
    # What a compiler prints about missing libraries and the like is not about measuring.
    entries = read_catalogue() if phase is Phase.PROFILE else _list_status_entries()
    found = next((found for entry in entries if (found := entry.apply(result, base)) is not None), None)
    if found is not None and result.ending is Ending.NOT_STARTED:
        return replace(found, summary=f"the command could not be started: {result.tail[-1]}", line=result.tail[-1])
    if found is not None or result.is_success:
        return found
    return _explain_signal(result) or _explain_status(result, phase)


def find_explanation(name: str) -> Explanation:
    """The entry of the catalogue with a name, for whoever knows by other means what went wrong."""
    entry = next(entry for entry in read_catalogue() if entry.name == name)
    return Explanation(name=entry.name, summary=entry.summary, remedies=entry.remedies, url=entry.url)


def says_nothing_measured(result: CommandResult) -> bool:
    """Whether the profiler said that it measured nothing; some versions write an empty report nevertheless."""
    entry = next(entry for entry in read_catalogue() if entry.name == "nothing-measured")
    return entry.apply(result, "") is not None


def _explain_timeout(phase: Phase, timeout_s: float | None) -> Explanation:
    after = "" if timeout_s is None else f" after {format_seconds(timeout_s)}"
    remedies = ["give it more time: gpaLsp.profile.timeoutSeconds"]
    if phase is Phase.PROFILE:
        remedies.insert(
            0, "measure less: --kernel NAME, --launches 1, a smaller input; each launch is repeated ten times or more"
        )
    return Explanation(name="timed-out", summary=f"the command was ended{after}", remedies=tuple(remedies))


def _explain_signal(result: CommandResult) -> Explanation | None:
    number = result.signal
    if number is None and result.status is not None:
        shells = result.status - _SHELL_SIGNALS
        number = shells if 0 < shells <= _HIGHEST_SIGNAL else None
    if number is None:
        return None
    name = name_signal(number)
    meaning = _read_signals().get(name)
    summary = f"the command was ended by {name}"
    return Explanation(name="signal", summary=f"{summary}: {meaning}" if meaning else summary)


def _explain_status(result: CommandResult, phase: Phase) -> Explanation:
    what = "building failed" if phase is Phase.BUILD else "the command failed"
    return Explanation(name="status", summary=f"{what} with status {result.status}; its output says more")


@cache
def read_catalogue() -> tuple[CatalogueEntry, ...]:
    """Every entry, in the order they are tried."""
    return tuple(_read_entry(table) for table in _read_file()["explanation"])


def _list_status_entries() -> Iterator[CatalogueEntry]:
    return (entry for entry in read_catalogue() if entry.printed is None)


def _read_entry(table: Mapping[str, Any]) -> CatalogueEntry:
    return CatalogueEntry(
        name=table["name"],
        summary=table["summary"],
        remedies=tuple(table["remedies"]),
        printed=re.compile(table["printed"]) if "printed" in table else None,
        status=table.get("status"),
        programs=frozenset(table.get("programs", ())),
        although_well=table.get("although_well", False),
        url=table.get("url"),
    )


@cache
def _read_signals() -> Mapping[str, str]:
    return {table["name"]: table["meaning"] for table in _read_file()["signal"]}


@cache
def _read_file() -> Mapping[str, Any]:
    return tomli.loads(Path(__file__).with_name("explanations.toml").read_text(encoding="utf-8"))
