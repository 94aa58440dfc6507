"""Page for Emacs, tried in a real one: diagnostics and hints."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.editors.documented import EDITORS, read_blocks
from tests.editors.neovim.conftest import find_editors
from tests.editors.workspace import CAUSE, VICTIM, Workspace, make_workspace
from tests.patience import LIMIT_S

SERVER = f'("{sys.executable}" "-m" "gpa_lsp.editor.protocol")'

WAIT = """
(defun wait-for (accept)
  (let ((end (+ (float-time) LIMIT)))
    (while (and (< (float-time) end) (not (funcall accept)))
      (accept-process-output nil 0.1))))
(setq inhibit-message t)
(set-language-environment "UTF-8")
""".replace("LIMIT", str(LIMIT_S))

EGLOT = """
(find-file (getenv "SOURCE"))
(call-interactively 'eglot)
(defun diagnostics () (or (flymake-diagnostics) (ensure-list eglot--diagnostics)))  ; flymake takes them when somebody looks
(defun measured () (seq-some (lambda (one) (string-match-p "stall" (flymake-diagnostic-text one))) (diagnostics)))
(wait-for #'measured)
(dolist (one (diagnostics))
  (princ (format "diagnostic %d %s\\n" (line-number-at-pos (flymake-diagnostic-beg one))
                 (car (split-string (flymake-diagnostic-text one) "\\n")))))
(eglot-inlay-hints-mode 1)
(defun hints () (seq-filter (lambda (one) (overlay-get one 'eglot--inlay-hint)) (overlays-in (point-min) (point-max))))
(eglot--update-hints-1 (point-min) (point-max))
(wait-for #'hints)
(dolist (one (hints))
  (princ (format "hint %d %s\\n" (line-number-at-pos (overlay-start one))
                 (or (overlay-get one 'before-string) (overlay-get one 'after-string)))))
(eglot-shutdown-all)
"""

LSP_MODE = """

(setq lsp-auto-guess-root t lsp-enable-file-watchers nil lsp-restart 'ignore lsp-keep-workspace-alive nil
      lsp-diagnostics-provider :none lsp-enable-suggest-server-download nil)
(find-file (getenv "SOURCE"))
(lsp)
(defun diagnostics () (gethash (lsp--fix-path-casing (buffer-file-name)) (lsp-diagnostics t)))
(defun measured () (seq-some (lambda (one) (string-match-p "stall" (lsp-get one :message))) (diagnostics)))
(wait-for #'measured)
(dolist (one (diagnostics))
  (princ (format "diagnostic %d %s\\n" (1+ (lsp-get (lsp-get (lsp-get one :range) :start) :line))
                 (car (split-string (lsp-get one :message) "\\n")))))
(dolist (one (append (lsp-request "textDocument/inlayHint"
               (list :textDocument (lsp--text-document-identifier)
                     :range (lsp--region-to-range (point-min) (point-max)))) nil))
  (princ (format "hint %d %s\\n" (1+ (lsp-get (lsp-get one :position) :line)) (lsp-get one :label))))
(lsp-workspace-shutdown (car (lsp-workspaces)))
"""


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    """A copy of the project, in a folder with an ASCII name and without a percent sign: eglot 1.17 loses diagnostics of other files."""
    return make_workspace(tmp_path / "work #1")


@pytest.fixture
def emacs() -> Path:
    program = find_editors() / "emacs"
    if not program.exists():
        pytest.skip("Emacs is not installed: tests/editors/install_others.sh installs it beside the system")
    return program


def run(emacs: Path, workspace: Workspace, lisp: str, tmp_path: Path) -> list[str]:
    """Lines that a script prints."""
    script = tmp_path / "test.el"
    script.write_text(lisp, encoding="utf-8")
    paths = [
        word
        for folder in sorted(
            (emacs.parent / "root-emacs" / "usr" / "share" / "emacs" / "site-lisp" / "elpa-src").glob("*")
        )
        for word in ("-L", str(folder))
    ]
    done = subprocess.run(
        [emacs, "-Q", "--batch", *paths, "-l", script],
        cwd=workspace.folder,
        env={**os.environ, "HOME": str(tmp_path), "SOURCE": str(workspace.source), "PYTHONPATH": str(EDITORS.parent)},
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT_S,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.split("\n")


def test_eglot_shows_causes_and_shares(emacs: Path, workspace: Workspace, tmp_path: Path) -> None:
    configuration = read_blocks("emacs.md", "elisp")[0]
    assert '("gpa-lsp" "serve")' in configuration
    configuration = configuration.replace('("gpa-lsp" "serve")', SERVER)
    printed = run(emacs, workspace, WAIT + configuration + EGLOT, tmp_path)
    check(printed, workspace)


def test_lsp_mode_runs_the_server_as_an_addition(emacs: Path, workspace: Workspace, tmp_path: Path) -> None:
    configuration = read_blocks("emacs.md", "elisp")[1]
    assert '\'("gpa-lsp" "serve")' in configuration
    configuration = configuration.replace('("gpa-lsp" "serve")', SERVER)
    modes = """
(require 'cl-lib)
(add-to-list 'auto-mode-alist '("\\\\.cuh?\\\\'" . c++-mode))
(setq project-vc-extra-root-markers '("Makefile"))
"""
    printed = run(emacs, workspace, modes + configuration + WAIT + LSP_MODE, tmp_path)
    check(printed, workspace)


def check(printed: list[str], workspace: Workspace) -> None:
    cause, victim = workspace.find_line(CAUSE) + 1, workspace.find_line(VICTIM) + 1
    assert any(line.startswith(f"diagnostic {cause} ") and "stall" in line for line in printed), printed
    assert any(line.startswith(f"hint {victim} ") and "long_scoreboard" in line for line in printed), printed
