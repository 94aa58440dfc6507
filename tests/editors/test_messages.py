"""Every message that the server or a client can show stands on the editors' page, with what a person can do; and none that nobody says any more."""

import re

from tests.conftest import ROOT
from tests.editors.said import list_said, simplify

PAGE = ROOT / "editors" / "README.md"

PASSED_ON = {
    "pages.py: str(error)": "a sentence in place of the page",
    "loader.py: reason": "PATH, and why it cannot be read",
    "user_runs.py: text": '"measuring failed: …"',
    "permission.py: question": '"Measuring runs a command from your settings in FOLDER: COMMAND"',
    "session.py: str(error)": "why a baseline cannot be pinned",
    "metrics.ts: $(info) ${shown.title}: ${shown.lack}": '"NAME: not in this profile"',
    "without_profile.py: explain_undescribed_kernel(None)": "No launch description. Create one: use the code action",
    "session.py: complaint": "the option is unchanged",
    "source_doubts.py: text": '"FILE was saved after it was measured: its numbers are marked with ?',
    "source_doubts.py: describe_doubts(doubts.unverified, doubts.unmapped)": '"every open source is what was measured, as far as anyone can tell"',
}
"""Messages whose words are found elsewhere, and where the page has them."""

SPOTS = frozenset({"jumps.ts: text", "jumps.ts: $(arrow-right) ${first.text}", "jumps.ts: $(flame) ${next.text}"})
"""Where a jump went, in the words of its mark, and NOTHING of the same file, which is read by itself."""

NOT_READ = frozenset(
    {
        "every open source is what was measured, as far as anyone can tell",
        "no launch description. Create one: use the code action “Describe a launch of …” on the kernel",
        "measuring failed: …",
        "// No running server knows this SASS",
        "// No loaded profile has this kernel",
    }
)
"""On the page, and said by sentences and documents, which are not read here."""


def read_page() -> str:
    text = PAGE.read_text(encoding="utf-8")
    return text[text.index("\n## Messages\n") : text.index("\n## Troubleshooting\n")]


def list_listed(page: str) -> set[str]:
    """The quoted messages in the first column; those of notebooks and the status bar have words of their own."""
    page = page[: page.index("### Notebooks")]
    cells = [line.split(" | ")[0].removeprefix("| ") for line in page.splitlines() if line.startswith("| ")]
    quoted = [part for cell in cells for part in re.split(r'(?<=[*"]) / |, with (?=")', cell) if part.startswith('"')]
    return {simplify(part[1 : part.rindex('"')]) for part in quoted}


def test_every_message_stands_on_the_page_with_what_to_do() -> None:
    page = read_page()
    listed = list_listed(page)
    missing = {}
    for message, where in list_said().items():
        if message in PASSED_ON:
            assert PASSED_ON[message] in page, message
        elif message not in listed and not message.startswith(tuple(SPOTS)):
            missing[message] = where
    assert missing == {}, f"messages that {PAGE.name} does not list under Messages: {missing}"


def test_the_page_lists_nothing_that_is_never_said() -> None:
    said = set(list_said())
    left = {one for one in list_listed(read_page()) - said - NOT_READ if not re.search(r"[A-Z]{3}|not executable", one)}
    assert left == set()


def test_every_row_says_what_to_do() -> None:
    rows = [line.strip("|").split(" | ") for line in read_page().splitlines() if line.startswith("| ")]
    assert len(rows) > 60
    assert [row[0] for row in rows if len(row) != 3 or not all(cell.strip() for cell in row)] == []
