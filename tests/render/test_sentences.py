"""Sentences as renderers show them: on pages their places are links, and everywhere their code is marked, whatever names are in them."""

import re

import pytest

from gpa_lsp.document.html_report.page import render_html_report
from gpa_lsp.document.markdown import write_cell, write_sentence
from gpa_lsp.document.page import explain_term, render_prose
from gpa_lsp.foundation.glossary import TERMS
from gpa_lsp.foundation.prose import Code, Place, Sentence, percent, say
from tests.render.html_report.page_examples import make_page_example

SENTENCE = say(
    "{share} of {name} is stalled on {code} at {place}.",
    share=percent(0.0002),
    name="a_b*c",
    code=Code(text="x`y|z"),
    place=Place(file="/s/k (1).cu", line=3, shown_file="k_1.cu"),
)


def test_markdown_escapes_words_and_marks_code() -> None:
    assert write_sentence(SENTENCE) == r"<0.1 % of a_b\*c is stalled on `` x`y|z `` at line 3 of k_1.cu."
    assert write_cell(SENTENCE).count(r"\|") == 1


def test_pages_escape_words_mark_code_and_link_places() -> None:
    page = str(render_prose(SENTENCE, lambda place: "#k0/line/0/3"))
    assert page.startswith("&lt;0.1 % of a_b*c is stalled on <code>x`y|z</code> at ")
    assert page.endswith('<a href="#k0/line/0/3">line 3 of k_1.cu</a>.')
    assert "<a" not in render_prose(SENTENCE, lambda place: "")
    assert render_prose(render_prose(SENTENCE)) == render_prose(SENTENCE)


@pytest.mark.parametrize("evil", ["<b>", "](javascript:0)", "`<i>`", "a\n# b"])
def test_words_of_a_sentence_become_no_markup(evil: str) -> None:
    sentence = Sentence([evil, Place(file=evil, line=1, shown_file=evil), Code(text=evil)])
    assert not re.search(r"<[bi]>", str(render_prose(sentence, lambda place: "#x")))
    markdown = re.sub(r"(`+).*?\1", "", write_sentence(sentence))
    assert "\n" not in markdown
    assert not re.search(r"(?<!\\)<|(?<!\\)\]\(", markdown)


def test_headings_that_are_terms_are_explained() -> None:
    meanings = {term.name: term.meaning for term in TERMS}
    assert explain_term("Nearest ceiling") == f'Nearest <abbr title="{meanings["ceiling"]}">ceiling</abbr>'
    assert explain_term("sectors/req").startswith('<abbr title="')
    for label in ("unknown", "share", "<b>", "a name that holds sector and is far too long for a heading"):
        assert "<abbr" not in explain_term(label)
    assert explain_term("<b>") == "&lt;b&gt;"
    assert f'<abbr title="{meanings["occupancy"]}">Occupancy</abbr>' in render_html_report(make_page_example())
