"""What a release needs beside the build.

    prepare_release.py check v1.2.3 ADDRESS    the tag, every version and both changelogs agree; and where the repository is, with what is said of it
    prepare_release.py address ADDRESS         that is said from now on: to be run once, where the repository gets its home
    prepare_release.py link REPOSITORY REF     the README's relative links become absolute, for pages that are not in the repository

Needs the standard library only. Exit status: 0 done, 1 something does not agree.
"""

import argparse
import json
import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MARKDOWN_LINK = re.compile(r"(!?)\[((?:[^\]\[]|\[[^\]]*\])*)\]\((?!https?:|#)([^)\s]+)\)")
REPOSITORY = re.compile(r'^Repository = "(.+)"', re.MULTILINE)
ADDRESSED = ("pyproject.toml", "editors/vscode/package.json")
"""Files that name the repository's address; everything else is told it, or takes it from the first."""
HTML_LINK = re.compile(r'\b(src|srcset)="(?!https?:)([^"]+)"')


def find_disagreements(tag: str, root: Path = ROOT) -> list[str]:
    """What does not name the version of a tag, each in a sentence."""
    version = tag.removeprefix("v")
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    package = re.search(
        r'^__version__ = "(.+)"', (root / "gpa_lsp" / "__init__.py").read_text(encoding="utf-8"), re.MULTILINE
    )
    extension = json.loads((root / "editors" / "vscode" / "package.json").read_text(encoding="utf-8"))["version"]
    versions = {
        "pyproject.toml": project,
        "gpa_lsp/__init__.py": package and package[1],
        "editors/vscode/package.json": extension,
    }
    found = [f"{name} says {said}, the tag {tag}" for name, said in versions.items() if said != version]
    section = re.compile(rf"^## \[?{re.escape(version)}\b", re.MULTILINE)
    logs = ("CHANGELOG.md", "editors/vscode/CHANGELOG.md")
    found += [
        f"{name} has no section {version}"
        for name in logs
        if not section.search((root / name).read_text(encoding="utf-8"))
    ]
    return found


def find_address(root: Path = ROOT) -> str:
    """Where the repository is, as these files say."""
    found = REPOSITORY.search((root / ADDRESSED[0]).read_text(encoding="utf-8"))
    assert found is not None, f"{ADDRESSED[0]} names no repository"
    return found[1]


def find_other_homes(address: str, root: Path = ROOT) -> list[str]:
    """Files that name another address than that of the repository they are in, each in a sentence."""
    named = find_address(root)
    texts = {name: (root / name).read_text(encoding="utf-8") for name in ADDRESSED}
    remedy = f"python .github/prepare_release.py address {address}"
    found = [f"{name} does not name {named}, which {ADDRESSED[0]} names" for name in texts if named not in texts[name]]
    return found if named == address else [*found, f"{ADDRESSED[0]} says {named}, and this is {address}: {remedy}"]


def move_home(address: str, root: Path = ROOT) -> None:
    """Write another address wherever one stands."""
    before = find_address(root)
    for name in ADDRESSED:
        text = (root / name).read_text(encoding="utf-8")
        (root / name).write_text(text.replace(before, address), encoding="utf-8")


def make_absolute(text: str, repository: str, ref: str) -> str:
    """Markdown whose relative links lead into a repository: pictures to the files themselves, the rest to their pages.

    >>> make_absolute("[a](b.md#c) ![p](x/y.png) [d](#d) [e](https://e)", "https://host/o/r", "v1")
    '[a](https://host/o/r/blob/v1/b.md#c) ![p](https://host/o/r/raw/v1/x/y.png) [d](#d) [e](https://e)'
    """
    raw, page = f"{repository}/raw/{ref}/", f"{repository}/blob/{ref}/"
    text = MARKDOWN_LINK.sub(lambda match: f"{match[1]}[{match[2]}]({(raw if match[1] else page) + match[3]})", text)
    return HTML_LINK.sub(lambda match: f'{match[1]}="{raw}{match[2]}"', text)


def main() -> int:
    """Do what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    check = commands.add_parser("check")
    check.add_argument("tag")
    check.add_argument("address", help="of the repository's page")
    commands.add_parser("address").add_argument("address", help="of the repository's page")
    link = commands.add_parser("link")
    link.add_argument("repository", help="address of the repository's page")
    link.add_argument("ref", help="commit or tag")
    options = parser.parse_args()
    if options.command == "check":
        found = [*find_disagreements(options.tag), *find_other_homes(options.address)]
        sys.stderr.write("".join(f"{sentence}\n" for sentence in found))
        return 1 if found else 0
    if options.command == "address":
        move_home(options.address)
        return 0
    readme = ROOT / "README.md"
    readme.write_text(
        make_absolute(readme.read_text(encoding="utf-8"), options.repository, options.ref), encoding="utf-8"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
