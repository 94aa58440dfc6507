"""The page of a report, read without a browser: what it holds, what it leaves out, what it asks for."""

import base64
import gzip
import json
import os
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from gpa_lsp.diagnosis.advice.model import Standing
from gpa_lsp.document.html_report.code_columns import (
    ABSENT,
    BLOCK_ROWS,
    CHANGED,
    UNVERIFIED,
    UNWANTED,
    SourceTexts,
    choose_rows,
    share_rows,
)
from gpa_lsp.document.html_report.page import render_html_report
from gpa_lsp.foundation.prose import say
from gpa_lsp.report.model import Report
from gpa_lsp.report.source_paths import SourceLocator
from tests.render.advice_examples import make_advised
from tests.render.html_report.large_reports import make_large_kernel
from tests.render.html_report.page_examples import (
    MARKUP,
    SOURCE_FILE,
    make_answered,
    make_before_and_after,
    make_hostile,
    make_page_example,
)
from tests.report.test_compare import AFTER, named
from tests.report_builder import build_kernel, build_report

PACKED = re.compile(r'<script type="text/plain" id="packed(\d+)">([^<]*)</script>')


def unpack(page: str) -> list[dict[str, Any]]:
    return [json.loads(gzip.decompress(base64.b64decode(text))) for _, text in PACKED.findall(page)]


class Tags(HTMLParser):
    """The elements of a page and their attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def list_tags(text: str) -> list[tuple[str, dict[str, str | None]]]:
    parser = Tags()
    parser.feed(text)
    return parser.found


def test_what_is_outside_of_the_kernel_is_named() -> None:
    kernel = make_advised()
    assert kernel.advice is not None
    first, *others = kernel.advice.advice
    outside = replace(kernel.advice, advice=(replace(first, standing=Standing.OUTSIDE), *others))
    page = render_html_report(build_report(replace(kernel, advice=outside)))
    assert '<span class="label">Outside the kernel:</span>' in str(unpack(page))


def test_what_the_compiler_makes_of_an_edit_stands_behind_its_remedy() -> None:
    kernel = make_advised()
    assert kernel.advice is not None
    first, *others = kernel.advice.advice
    tried = replace(kernel.advice, advice=(replace(first, witness=say("compiled: 16 → 24 registers")), *others))
    page = str(unpack(render_html_report(build_report(replace(kernel, advice=tried)))))
    assert '<br><span class="dim">compiled: 16 → 24 registers</span></span></li>' in page


def test_a_verdict_ends_in_one_stop() -> None:
    assert "at a 1.90× speedup.</p>" in str(unpack(render_html_report(build_report(make_advised()))))


def test_nothing_is_loaded_from_anywhere() -> None:
    page = render_html_report(make_page_example())
    for tag, attributes in list_tags(page):
        assert tag not in ("link", "iframe", "object", "embed", "base", "form")
        assert "src" not in attributes
        assert (attributes.get("href") or "#").startswith("#")
    policy = next(values["content"] for _, values in list_tags(page) if values.get("http-equiv"))
    assert policy is not None
    assert policy.startswith("default-src 'none'")
    assert "unsafe-inline" not in policy.partition("script-src")[2].partition(";")[0]


def test_the_same_report_gives_the_same_page() -> None:
    assert render_html_report(make_page_example()) == render_html_report(make_page_example())


def test_every_problem_and_every_kernel_is_there() -> None:
    report = make_page_example()
    page = render_html_report(report)
    assert all(problem.message in page for problem in report.problems)
    assert [data["mangled"] for data in unpack(page)] == [kernel.mangled_name for kernel in report.kernels]


def test_a_page_without_charts_brings_no_library() -> None:
    page = render_html_report(build_report(build_kernel("k.cu:3  EXIT  ; selected=3")))
    assert len(page) < 100_000


def test_no_page_may_compile_scripts_as_it_runs() -> None:
    page = render_html_report(make_page_example())
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]+)"', page)
    assert "unsafe-eval" not in policy
    assert "script-src &#39;sha256-" in policy


def test_columns_hold_what_the_report_holds() -> None:
    kernel = make_answered()
    data = unpack(render_html_report(build_report(kernel)))[0]
    code, pool = data["code"], data["pool"]
    assert [pool[text] for text in code["text"][:2]] == list(kernel.instructions.texts[:2])
    assert code["samples"] == kernel.instructions.all_samples.sum(axis=1).tolist()
    assert [int(offset, 16) for offset in code["offset"]] == kernel.instructions.pc_offsets.tolist()
    source = next(file for file in data["sources"] if file["path"] == SOURCE_FILE)
    rows = {row.line: row.inclusive_samples for row in kernel.lines if row.file == SOURCE_FILE}
    assert {line: count for line, count in zip(source["line"], source["samples"], strict=True) if count} == rows
    assert pool[source["text"][source["line"].index(9)]] == "    out[i] = expf(sum) / n;"
    chain = code["chains"][code["chain"][2]]
    assert [(data["files"][chain[at]], chain[at + 1]) for at in (0, 2)] == [(SOURCE_FILE, 1), (SOURCE_FILE, 8)]


def test_pairs_of_cause_and_victim_are_linked_both_by_row_and_by_line() -> None:
    data = unpack(render_html_report(build_report(make_answered())))[0]
    heaviest = data["rowCauses"][0]
    assert heaviest[:2] == [2, 1]
    assert "long_scoreboard, data from global memory, in R2, 8 cycles apart" in data["pool"][heaviest[2]]
    waits = [link for link in data["lineCauses"] if link[2] and link[1] == 1]
    assert (data["files"][waits[0][3]], waits[0][4]) == (SOURCE_FILE, 8)


def test_large_kernels_are_cut_where_it_is_cold_and_the_page_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpa_lsp.document.html_report.code_columns.MOST_ROWS", 128)
    kernel = make_large_kernel(0, 1000)
    code = unpack(render_html_report(build_report(kernel)))[0]["code"]
    assert len(code["rows"]) == 128
    assert code["leftOut"].startswith("872 instructions with the fewest samples are not shown")
    assert "gpa-lsp report sass" in code["leftOut"]
    kept = kernel.instructions.all_samples.sum(axis=1)[code["rows"]].sum()
    assert kept >= kernel.total_samples * 128 / 1000


@given(st.lists(st.integers(0, 100), max_size=1000), st.integers(1, 600))
def test_kept_rows_are_ascending_and_the_hottest_is_among_them(samples: list[int], most: int) -> None:
    counts = np.array(samples, dtype=np.int64)
    rows = choose_rows(counts, most)
    assert rows.tolist() == sorted(set(rows.tolist()))
    assert len(rows) <= max(-(-most // BLOCK_ROWS) * BLOCK_ROWS, 0)
    assert len(rows) == len(samples) or counts[rows].sum() * len(samples) >= counts.sum() * (len(rows) - BLOCK_ROWS)


@given(st.lists(st.integers(0, 30_000), max_size=60))
def test_shares_of_the_page_are_fair(counts: list[int]) -> None:
    limits = share_rows(counts, most=100_000)
    assert len(limits) == len(counts)
    assert all(limit <= count for limit, count in zip(limits, counts, strict=True))
    assert sum(limits) <= 100_000 + BLOCK_ROWS * len(counts)
    cut = [limit for limit, count in zip(limits, counts, strict=True) if limit < min(count, 20_000)]
    whole = [limit for limit, count in zip(limits, counts, strict=True) if limit == count]
    assert not cut or max(whole, default=0) <= max(cut)


def test_texts_come_from_the_profile_first_and_from_here_with_a_mark_where_they_may_have_changed(
    tmp_path: Path,
) -> None:
    file = tmp_path / "k.cu"
    file.write_text("here\n")
    locator = SourceLocator([tmp_path])
    path = str(file)
    kernel = build_kernel(f"{path}:1  EXIT  ; selected=1", measured_unix_s=1_700_000_000)
    os.utime(file, (1_600_000_000, 1_600_000_000))
    assert SourceTexts(locator).read(kernel, path) == (("here", ""), "")
    embedded = replace(kernel, embedded_sources={path: "there"})
    assert SourceTexts(locator).read(embedded, path) == (("there",), "")
    assert SourceTexts(locator, is_wanted=False).read(embedded, path) == (None, UNWANTED)
    assert SourceTexts(None).read(kernel, path) == (None, ABSENT)
    assert SourceTexts(locator).read(kernel, "/elsewhere/other.cu") == (None, ABSENT)
    os.utime(file, (1_800_000_000, 1_800_000_000))
    assert SourceTexts(locator).read(kernel, path) == (("here", ""), UNVERIFIED)
    assert SourceTexts(locator).read_line(kernel, path, 1) == "", "what may be another line is not quoted"
    stamped = replace(kernel, source_sizes={path: 5})
    assert SourceTexts(locator).read(stamped, path) == (("here", ""), "")
    assert SourceTexts(locator).read_line(stamped, path, 1) == "here"
    longer = replace(kernel, source_sizes={path: 6})
    assert SourceTexts(locator).read(longer, path) == (None, CHANGED)
    file.write_text("\nhere\n")
    assert SourceTexts(locator).read(kernel, path) == (None, CHANGED), "the line that was measured is empty"


def test_without_texts_the_lines_stand_alone_with_the_reason() -> None:
    kernel = make_answered()
    source = unpack(render_html_report(build_report(kernel), with_sources=False))[0]["sources"][0]
    assert source["text"] is None
    assert source["why"] == UNWANTED
    assert 8 in source["line"]
    assert 2 not in source["line"]


def test_markup_in_a_profile_is_no_markup_in_the_page() -> None:
    page = render_html_report(make_hostile())
    known = {"script", "style", "meta", "html", "head", "title", "body"}
    for text in (page, unpack(page)[0]["html"]):
        assert MARKUP not in text
        for tag, attributes in list_tags(text):
            assert tag != "img"
            assert not any(name.startswith("on") for name in attributes)
            assert tag not in known or text is page


def test_folders_of_the_writer_are_not_in_the_page(tmp_path: Path) -> None:
    kernel = replace(make_answered(), profile_path=tmp_path / "secret" / "profile.ncu-rep")
    page = render_html_report(build_report(kernel))
    everything = page + json.dumps(unpack(page))
    assert "profile.ncu-rep" in everything
    assert "secret" not in everything


def test_changes_since_an_earlier_profile() -> None:
    before, after = make_before_and_after()
    page = render_html_report(after, before=before)
    assert "Only in the earlier profile: gone." in page
    html = unpack(page)[0]["html"]
    assert "2.00×" in html
    assert "By stall reason" in html


def test_the_only_kernel_of_another_name_is_compared_with_the_one_that_it_is_like() -> None:
    before, after = build_report(named("conv_base")), build_report(named("conv_tiled", AFTER))
    page = render_html_report(after, before=before)
    assert "Only in the earlier profile" not in page
    assert "named conv_base in the earlier profile" in unpack(page)[0]["html"]
    two = render_html_report(after, before=build_report(named("conv_base"), named("conv_basis")))
    assert "Only in the earlier profile: conv_base, conv_basis." in two


def test_an_empty_report_is_a_page() -> None:
    assert "No kernel was found." in render_html_report(Report(problems=(), kernels=()))
