"""Licences of all files: our own, and those of what is installed along with them."""

import re
import tomllib

from gpa_lsp.cli.installation import NVIDIA_PACKAGES
from tests.conftest import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_the_licence_goes_into_every_package() -> None:
    text = (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert "Apache License\n                           Version 2.0, January 2004" in text
    assert text.rstrip().endswith("limitations under the License.")
    assert PROJECT["license"] == "Apache-2.0"
    assert PROJECT["license-files"] == ["LICENSE", "gpa_lsp/document/charts/assets/vega-notices.js"]
    assert (ROOT / "editors" / "vscode" / "LICENSE").read_text(encoding="utf-8") == text


def test_the_notices_of_the_chart_script_come_with_it() -> None:
    """A page embeds the script whole, so whoever passes a page on passes the notices on."""
    assets = ROOT / "gpa_lsp" / "document" / "charts" / "assets"
    script, notices = ((assets / name).read_text(encoding="utf-8") for name in ("vega.js", "vega-notices.js"))
    assert script.startswith(notices) and notices.startswith("/*!")
    for holder in ("Interactive Data Lab", "Mike Bostock", "Joachim Wester", "Simon Lydell", "Cynthia Brewer"):
        assert holder in notices
    assert "Redistributions in binary form must reproduce the above copyright notice" in notices
    assert "</script" not in script.lower() and "<!--" not in script


def test_what_nvidia_owns_is_named_where_it_is_installed() -> None:
    extras = PROJECT["optional-dependencies"]
    asked_for = [*PROJECT["dependencies"], *(text for name, texts in extras.items() if name != "dev" for text in texts)]
    owned = {match[0] for text in asked_for if (match := re.match(r"nvidia-[\w-]+", text))}
    assert owned == set(NVIDIA_PACKAGES)
    section = (ROOT / "README.md").read_text(encoding="utf-8").partition("\n## Licence\n")[2].partition("\n## ")[0]
    assert owned == set(re.findall(r"`(nvidia-[\w-]+)`", section))
