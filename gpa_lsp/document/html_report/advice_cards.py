"""Advice for a page: everything a card shows, as text and addresses."""

from collections.abc import Sequence

from markupsafe import Markup
from msgspec import Struct

from gpa_lsp.diagnosis.advice.model import Advice, Hotspot, Region
from gpa_lsp.document.advice_words import (
    SECTION_TITLES,
    describe_bound,
    describe_formula,
    describe_hotspot,
    describe_interval,
    describe_matched,
    describe_region,
    describe_rivals,
    describe_scope,
    describe_small_regions,
    show_estimate,
    show_gain,
)
from gpa_lsp.document.html_report.addresses import KernelAddresses
from gpa_lsp.document.html_report.source_texts import SourceTexts
from gpa_lsp.document.layout import join_facts
from gpa_lsp.document.page import render_prose
from gpa_lsp.document.places import InstructionPlaces, PlaceNames
from gpa_lsp.foundation.locations import shorten_paths, write_place
from gpa_lsp.foundation.numbers import format_percent
from gpa_lsp.kernel.scopes import Scope
from gpa_lsp.report.model import KernelReport


class InstructionLink(Struct, frozen=True, kw_only=True):
    """An instruction to go to."""

    place: str  # its line in short, or its offset
    text: str  # disassembly; may be empty
    link: str  # fragment


class HotspotCard(Struct, frozen=True, kw_only=True):
    """A def and its use."""

    percent: str  # of the kernel's samples
    cause: InstructionLink  # the causing instruction
    stalled: InstructionLink | None  # the stalled one; None where both are one instruction
    facts: str  # the rest, on one line


class RegionCard(Struct, frozen=True, kw_only=True):
    """A place to change."""

    words: str  # what it is
    place: str  # where; may be empty
    link: str  # fragment; may be empty
    source: str  # text of its line; may be empty
    facts: str  # how much, on one line
    hint: str  # what to do here; may be empty
    hotspots: Sequence[HotspotCard]  # most samples first


class AdviceCard(Struct, frozen=True, kw_only=True):
    """A piece of advice."""

    title: str  # a few words
    optimizer: str  # who says so
    change: str  # what has to be changed
    estimate: str  # of the speedup
    interval: str  # of the estimate; may be empty
    bound: Markup  # what can be reached, and why
    formula: str  # what the formula alone gives; empty where that is the estimate
    witness: Markup  # what its edit was compiled to; may be empty
    matched: str  # how much it is about; may be empty
    rivals: str  # advice about the same samples; may be empty
    hint: Markup  # what to do
    regions: Sequence[RegionCard]  # where
    rest: str  # regions that are not shown; may be empty
    caveats: Sequence[Markup]  # what it would break or cannot know
    reasons: Sequence[Markup]  # the basis of the estimate


class AdviceCards:
    """Makes the cards of one kernel.

    Args:
        kernel: the kernel.
        addresses: of its places.
        texts: reads sources.
    """

    def __init__(self, kernel: KernelReport, addresses: KernelAddresses, texts: SourceTexts) -> None:
        self._kernel = kernel
        self._addresses = addresses
        self._texts = texts
        self._places = PlaceNames()
        self._instructions = InstructionPlaces(kernel, self._places)
        self._short = shorten_paths({frame.file for chain in kernel.instructions.chains for frame in chain})

    def build(self) -> list[AdviceCard]:
        """All cards, largest estimate first."""
        every = self._kernel.advice.advice if self._kernel.advice is not None else ()
        return [self._build_card(advice, every) for advice in every]

    def _build_card(self, advice: Advice, every: Sequence[Advice]) -> AdviceCard:
        speedup = advice.speedup
        shown = advice.worthy_regions
        rest = len(advice.regions) - len(shown)
        return AdviceCard(
            title=advice.title,
            optimizer=advice.optimizer,
            change=SECTION_TITLES[advice.category],
            estimate=show_estimate(speedup),
            interval=describe_interval(speedup),
            bound=self._write(describe_bound(speedup)),
            formula=describe_formula(speedup),
            witness=self._write(advice.witness),
            matched=describe_matched(advice),
            rivals=describe_rivals(advice, every),
            hint=self._write(advice.hint),
            regions=[self._build_region(region, advice) for region in shown],
            rest=f"and {describe_small_regions(rest)}" if rest else "",
            caveats=[self._write(caveat) for caveat in advice.caveats],
            reasons=[self._write(reason) for reason in advice.reasons],
        )

    def _build_region(self, region: Region, advice: Advice) -> RegionCard:
        scope = region.scope
        words, place = describe_scope(scope, self._kernel, self._places)
        facts = [describe_region(advice, region)]
        if len(advice.regions) > 1:
            facts.append(f"alone {show_gain(region.speedup)}")
        if region.hotspots:
            facts.append(f"{format_percent(region.density)} of them in the pairs below")
        return RegionCard(
            words=words,
            place=self._shorten(scope, place),
            link=self._link(scope),
            source=self._texts.read_line(self._kernel, scope.file, scope.line),
            facts=join_facts(facts),
            hint="" if region.hint == advice.hint else self._write(region.hint),
            hotspots=[self._build_hotspot(hotspot, scope) for hotspot in region.hotspots],
        )

    def _write(self, sentence: str) -> Markup:
        return render_prose(sentence, self._addresses.place)

    def _shorten(self, scope: Scope, place: str) -> str:
        """The short name of a file instead of the whole path."""
        if scope.file is None or scope.line is None:
            return place
        name = self._short.get(scope.file, scope.file)
        return write_place(name, scope.line, scope.last_line)

    def _link(self, scope: Scope) -> str:
        if scope.file is not None and scope.line:
            return self._addresses.line(scope.file, scope.line)
        return self._addresses.row(scope.row) if scope.row < len(self._kernel.instructions) else ""

    def _build_hotspot(self, hotspot: Hotspot, region: Scope) -> HotspotCard:
        ratio = hotspot.samples / self._kernel.total_samples if self._kernel.total_samples else 0.0
        return HotspotCard(
            percent=format_percent(ratio),
            cause=self._link_row(hotspot.def_row),
            stalled=None if hotspot.use_row is None else self._link_row(hotspot.use_row),
            facts=join_facts(describe_hotspot(hotspot, region)),
        )

    def _link_row(self, row: int) -> InstructionLink:
        return InstructionLink(
            place=" < ".join(self._instructions.show(row)),
            text=self._kernel.instructions.texts[row],
            link=self._addresses.row(row),
        )
