"""Make a virtual environment with the packages that the bundled server needs: ``make_environment.py FOLDER REQUIREMENTS``.

Prints what it does. Where that fails, the last line on standard error is a sentence for the user, and the exit status is 1.
"""

import errno
import hashlib
import os
import re
import subprocess
import sys
import venv
from http.client import HTTPException
from pathlib import Path
from urllib.parse import urljoin
from urllib.request import urlopen

# Fetched where Python comes with neither ensurepip nor pip, as on Debian and Ubuntu without python3-venv.
PIP_WHEEL = "pip-26.3-py3-none-any.whl"
PIP_SHA256 = "f3b60b20ffaadd4415ed7957212a38ac63fa4c5fa375bd0f4a797777940fad13"
INDEX = os.environ.get("PIP_INDEX_URL", "https://pypi.org/simple")

# pip --python came with this one.
LEAST_PIP = (22, 3)

FETCH_TIMEOUT_S = 60

NO_SPACE = "There is no space left for it in {folder}: it needs about 500 MB."
NO_NETWORK = (
    "The package index cannot be reached. Check the network, and behind a proxy the variables HTTPS_PROXY or PIP_INDEX_URL, "
    "then try again."
)
CERTIFICATE = (
    "The certificate of the package index is not trusted here. Behind a proxy that has one of its own, name it in the variable "
    "PIP_CERT or SSL_CERT_FILE, then try again."
)

# What pip prints, and what it means for the user; the first that fits. Where a connection failed, pip also says that no version was found.
EXPLANATIONS = (
    (r"No space left on device|Disk quota exceeded|not enough space on the disk", NO_SPACE),
    (
        r"DO NOT MATCH THE HASHES",
        "A package from the index is not the one this version of the extension was built with: its hash differs.",
    ),
    (r"CERTIFICATE_VERIFY_FAILED", CERTIFICATE),
    (
        r"Connection\w*Error|ConnectTimeout|ProxyError|ReadTimeout|Max retries exceeded|Network is unreachable|Name or service not known"
        r"|Temporary failure in name resolution|getaddrinfo failed|Connection (?:refused|reset|aborted)|RemoteDisconnected|timed out",
        NO_NETWORK,
    ),
    (
        r"No matching distribution found for ([\w.-]+)",
        "The package index has no {0} for Python {version} on this system, or cannot be reached. Check the network or choose another Python.",
    ),
    (r"Permission denied|Read-only file system|Access is denied", "{folder} cannot be written to."),
)


class MakingError(Exception):
    """Says in a sentence why there is no environment."""


def tell(line: str) -> None:
    """Print what happens next."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def run(command: list[str]) -> tuple[int, str]:
    """Run a program, pass on what it prints, and return its exit status with that."""
    printed = []
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
    ) as child:
        assert child.stdout is not None
        for line in child.stdout:
            tell(line.rstrip())
            printed.append(line)
    return child.returncode, "".join(printed)


def explain(printed: str, folder: Path) -> str:
    """Sentence about what pip or Python printed when it failed."""
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    for pattern, sentence in EXPLANATIONS:
        found = re.search(pattern, printed)
        if found:
            return sentence.format(*found.groups(), folder=folder.parent, version=version)
    lines = [line for line in printed.splitlines() if line.strip()]
    return lines[-1].strip() if lines else "pip failed and printed nothing."


def explain_system_error(error: OSError, folder: Path) -> str:
    """Sentence about an error of the operating system."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return NO_SPACE.format(folder=folder.parent)
    return explain(str(error), folder)


def find_pip(python: Path, folder: Path) -> list[str]:
    """Command that is pip for the environment: its own, that of this Python, or one from the index."""
    status, printed = run([str(python), "-I", "-m", "ensurepip", "--default-pip"])
    if status == 0:
        return [str(python), "-I", "-u", "-m", "pip"]
    if re.search(EXPLANATIONS[0][0], printed):
        raise MakingError(explain(printed, folder))
    host = [sys.executable, "-I", "-u", "-m", "pip"]
    status, printed = run([*host, "--version"])
    version = re.match(r"pip (\d+)\.(\d+)", printed)
    if status == 0 and version and (int(version[1]), int(version[2])) >= LEAST_PIP:
        return [*host, "--python", str(python)]
    return [str(python), "-I", "-u", str(fetch_pip(folder) / "pip")]


def fetch_pip(folder: Path) -> Path:
    """Path of a pip from the index that runs without being installed."""
    tell(f"Fetching {PIP_WHEEL}: this Python has no pip")
    page = f"{INDEX.rstrip('/')}/pip/"
    try:
        with urlopen(page, timeout=FETCH_TIMEOUT_S) as answer:
            link = re.search(rf'href="([^"]*{re.escape(PIP_WHEEL)}[^"]*)"', answer.read().decode())
        if link is None:
            raise MakingError(
                f"The package index has no {PIP_WHEEL}. Install pip and venv for {sys.executable}, then try again."
            )
        with urlopen(urljoin(page, link[1]), timeout=FETCH_TIMEOUT_S) as answer:
            wheel = answer.read()
    except (OSError, HTTPException) as error:
        raise MakingError(CERTIFICATE if "CERTIFICATE" in str(error) else NO_NETWORK) from error
    if hashlib.sha256(wheel).hexdigest() != PIP_SHA256:
        raise MakingError(f"{PIP_WHEEL} from the index is not the one this version of the extension was built with.")
    path = folder / PIP_WHEEL
    path.write_bytes(wheel)
    return path


def make(folder: Path, requirements: Path) -> None:
    """Make the environment.

    Raises:
        MakingError: the environment is not usable.
        OSError: the folder cannot be written.
    """
    tell(f"Making a Python environment in {folder}")
    venv.create(folder, with_pip=False, clear=True, symlinks=os.name != "nt")
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    pip = find_pip(python, folder)
    tell("Installing the packages")
    # Wheels alone: nothing is built here, and no code of a package runs.
    status, printed = run(
        [
            *pip,
            "install",
            "--disable-pip-version-check",
            "--no-input",
            "--require-hashes",
            "--only-binary",
            ":all:",
            "-r",
            str(requirements),
        ]
    )
    if status != 0:
        raise MakingError(explain(printed, folder))


def main(folder: Path, requirements: Path) -> int:
    """Make the environment and return the exit status."""
    try:
        make(folder, requirements)
    except MakingError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    except OSError as error:
        sys.stderr.write(f"{explain_system_error(error, folder)}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
