"""Builds ``gpa_lsp/document/charts/assets/vega.js``, which draws the charts of pages, from the published files of Vega, Vega-Lite and Vega-Embed.

    build_chart_script.py            download the pinned packages with npm, check their hashes, write the file
    build_chart_script.py --check    the same, but compare with the file that is there

A new version is a new entry in PACKAGES: ``npm view NAME@VERSION dist.integrity`` gives its hash. Compare vega-notices.js with the licences of
what the packages bundle. Exit status: 0 done, 1 the file differs or a hash does not agree.
"""

import argparse
import base64
import hashlib
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ASSETS = HERE.parent / "gpa_lsp" / "render" / "charts" / "assets"
SCRIPT, NOTICES = ASSETS / "vega.js", ASSETS / "vega-notices.js"

# name, version, SHA-512 of the package as the registry has it, file in it; in the order in which they load
PACKAGES = (
    (
        "vega",
        "6.4.0",
        "rHXCq2LpEWCLMjXBEj7hocY9G0/i5TGYRayGGSj06VTF4+l2IG2Z7oeZKCjWbUh/7hTE/mVhbaOPB72wCElh6g==",
        "build/vega.min.js",
    ),
    (
        "vega-lite",
        "6.4.3",
        "d/7hPjfz560UERaQuTmGgIVfXAe3g2hJWeC+igDeaGohUdEoNrHLXgR/yTOBT8vV/lIuuKnw+0/xWWblkDwkMQ==",
        "build/vega-lite.min.js",
    ),
    (
        "vega-embed",
        "7.3.0",
        "wQ8s5GaSzqoKgmRfbRolgBrjE2CP7ZKHXqH7NijxMqPjpdWxSs4Dn8tvp9g0giQvh2cK+3p56sxjWWM0wNngGw==",
        "build/vega-embed.min.js",
    ),
)


def read_package(name: str, version: str, digest: str, member: str, folder: Path) -> str:
    """Download a package with npm and read one file of it.

    Raises:
        ValueError: the package is not the one whose hash is pinned.
    """
    command = ["npm", "pack", f"{name}@{version}", "--silent", "--pack-destination", str(folder)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    archive = folder / f"{name}-{version}.tgz"
    found = base64.b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode()
    if found != digest:
        raise ValueError(f"{archive.name} has the SHA-512 {found}, not {digest}")
    with tarfile.open(archive) as opened:
        file = opened.extractfile(f"package/{member}")
        assert file is not None
        text = file.read().decode("utf-8")
    return "\n".join(line for line in text.splitlines() if not line.startswith("//# sourceMappingURL="))


def build_script() -> str:
    """Join the notices and the libraries into a script that can stand in a page.

    Raises:
        ValueError: a hash does not agree, or a library holds what would end the element it stands in.
    """
    with tempfile.TemporaryDirectory() as folder:
        libraries = [read_package(*package, folder=Path(folder)) for package in PACKAGES]
    script = "\n".join([NOTICES.read_text(encoding="utf-8").rstrip(), *libraries, ""])
    if "</script" in script.lower() or "<!--" in script:
        raise ValueError("a library holds </script or <!--, which a page cannot embed")
    return script


def main() -> int:
    """Write or check the script."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare with the file that is there")
    arguments = parser.parse_args()
    try:
        script = build_script()
    except ValueError as error:
        sys.exit(str(error))
    if not arguments.check:
        SCRIPT.write_text(script, encoding="utf-8")
    elif SCRIPT.read_text(encoding="utf-8") != script:
        sys.exit(f"{SCRIPT} is not what the pinned packages make; run {Path(__file__).name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
