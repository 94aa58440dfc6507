/** What to do when no server can be started: say why, and offer the ways out. */

import * as path from "node:path";
import { commands, env, type ExtensionContext, Uri, window } from "vscode";
import { BUNDLED, findProgram, ownEnvironmentFolder } from "./interpreters";
import type { Nothing } from "./python";

const COPY = "Copy Command";
const CREATE = "Create Environment…";
const DOCUMENTATION = "Documentation";

/** Tell why there is no server, with a button for each remedy. `restart` is called when one of them may have helped. */
export async function offerRemedies(context: ExtensionContext, nothing: Nothing, restart: () => void): Promise<void> {
  const python = nothing.interpreter ?? findProgram("python3") ?? findProgram("python");
  const install = `"${python ?? "python3"}" -m pip install -r "${requirementsOf(context)}"`; // the server itself comes along
  const buttons = python === undefined || nothing.missing.length === 0 ? [DOCUMENTATION] : [COPY, CREATE, DOCUMENTATION];
  const advice = nothing.missing.length === 0 ? "Set gpaLsp.interpreter, or install Python 3.11 or later." : "Create an environment with what it lacks, or copy the command that installs it.";
  const chosen = await window.showErrorMessage(`The GPU advisor has no server to run. ${nothing.reason} ${advice}`, ...buttons);
  if (chosen === COPY) {
    await env.clipboard.writeText(install);
  } else if (chosen === CREATE && python !== undefined) {
    await createEnvironment(context, python, restart);
  } else if (chosen === DOCUMENTATION) {
    await commands.executeCommand("markdown.showPreview", Uri.joinPath(context.extensionUri, "README.md"));
  }
}

const requirementsOf = (context: ExtensionContext): string => context.asAbsolutePath(path.join(BUNDLED, "requirements.txt"));

async function createEnvironment(context: ExtensionContext, python: string, restart: () => void): Promise<void> {
  const folder = ownEnvironmentFolder(context);
  const detail = `${python} will make a virtual environment in ${folder} and install NumPy, Protocol Buffers, tree-sitter, NVIDIA's nvdisasm and what they need from the Python package index.`;
  const agreed = await window.showInformationMessage("Create a Python environment for the GPU advisor?", { modal: true, detail }, "Create");
  if (agreed === undefined) {
    return;
  }
  // The program itself is the terminal's shell, so that nothing is quoted twice.
  const tool = context.asAbsolutePath(path.join(BUNDLED, "tool", "make_environment.py"));
  const requirements = requirementsOf(context);
  const terminal = window.createTerminal({ name: "GPU advisor: environment", shellPath: python, shellArgs: [tool, folder, requirements], cwd: context.extensionPath });
  terminal.show();
  const closed = window.onDidCloseTerminal((ended) => {
    if (ended === terminal) {
      closed.dispose();
      if (ended.exitStatus?.code === 0) {
        restart();
      }
    }
  });
  context.subscriptions.push(closed);
}
