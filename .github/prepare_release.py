"""What a release needs beside the build.

    prepare_release.py check v1.2.3            the tag, every version and both changelogs agree
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
    commands.add_parser("check").add_argument("tag")
    link = commands.add_parser("link")
    link.add_argument("repository", help="address of the repository's page")
    link.add_argument("ref", help="commit or tag")
    options = parser.parse_args()
    if options.command == "check":
        found = find_disagreements(options.tag)
        sys.stderr.write("".join(f"{sentence}\n" for sentence in found))
        return 1 if found else 0
    readme = ROOT / "README.md"
    readme.write_text(
        make_absolute(readme.read_text(encoding="utf-8"), options.repository, options.ref), encoding="utf-8"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
