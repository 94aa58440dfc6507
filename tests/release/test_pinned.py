"""Workflows run pinned libraries (by hash) and pinned actions (by commit)."""

import re
import tomllib

from tests.conftest import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PINNED = (ROOT / ".github" / "requirements-dev.txt").read_text(encoding="utf-8")
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
ACTIONS = sorted((ROOT / ".github" / "actions").glob("*/action.yml"))


def name_of(requirement: str) -> str:
    return re.split(r"[^\w.-]", requirement, maxsplit=1)[0].lower().replace("_", "-").replace(".", "-")


def test_every_development_dependency_is_pinned_with_hashes_and_no_address() -> None:
    wanted = {name_of(text) for text in [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["dev"]]}
    entries = re.findall(r"^(\S+)==\S+(.*(?:\n    .*)*)", PINNED, re.MULTILINE)
    assert wanted <= {name_of(name) for name, _ in entries}
    assert [name for name, rest in entries if "--hash=sha256:" not in rest] == []
    assert "://" not in PINNED


def test_every_action_is_pinned_to_a_commit_and_says_its_version() -> None:
    used = [
        line for path in (*WORKFLOWS, *ACTIONS) for line in re.findall(r"uses: (.+)", path.read_text(encoding="utf-8"))
    ]
    assert len(used) > 10
    assert [line for line in used if not re.fullmatch(r"[\w/-]+@[0-9a-f]{40}  # v\d+\.\d+\.\d+", line)] == []


def test_a_workflow_has_no_permission_that_a_job_does_not_ask_for_and_no_secret() -> None:
    for path in WORKFLOWS:
        text = path.read_text(encoding="utf-8")
        assert re.search(r"^permissions: \{\}$", text, re.MULTILINE)
        assert "secrets." not in text


def test_every_container_is_named_by_its_digest() -> None:
    """A tag names another image tomorrow."""
    text = "".join(path.read_text(encoding="utf-8") for path in (*WORKFLOWS, *ACTIONS))
    images = re.findall(r"^\s*(?:container|image): *(\S.*)$", text, re.MULTILINE)
    assert [image for image in images if "@sha256:" not in image] == []
