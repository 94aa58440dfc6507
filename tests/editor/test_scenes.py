"""Texts that an editor shows, word for word: the scenes of ``scenes/*.md``."""

import difflib
import os

import pytest

from tests.editor.sass import questions
from tests.editor.scenes import QUESTIONS, Page, list_pages

assert questions.sass in QUESTIONS.values()  # importing them adds them

SCENES = [
    pytest.param(page, heading, id=f"{page.path.stem}: {heading}")
    for page in list_pages()
    for heading in page.list_headings()
]


@pytest.mark.parametrize(("page", "heading"), SCENES)
def test_a_scene_is_shown_as_it_is_written(page: Page, heading: str) -> None:
    if os.environ.get("UPDATE_GOLDEN"):
        page.rewrite()
        return
    differences = []
    for step, answer in page.play(heading):
        written = step["body"].splitlines(keepends=True)
        found = difflib.unified_diff(written, answer.splitlines(keepends=True), f"{step['info']}, written", "shown")
        differences.append("".join(found))
    assert differences, "nothing is asked"
    assert not any(differences), "\n".join([*filter(None, differences), "If this is meant: UPDATE_GOLDEN=1 pytest"])


def test_headings_name_their_scenes_once() -> None:
    for page in list_pages():
        headings = page.list_headings()
        assert len(headings) == len(set(headings)) > 0, page.path.name
