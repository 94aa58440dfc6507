/** The settings that this extension itself reads; all others are the server's. */

import * as os from "node:os";
import { ConfigurationTarget, workspace } from "vscode";
import type { ImportStrategy } from "./python";

export const SECTION = "gpaLsp";

/** Settings that decide which server runs: a change restarts it. */
export const SERVER_SETTINGS = ["path", "interpreter", "importStrategy"].map((name) => `${SECTION}.${name}`);

function read<T>(name: string, fallback: T): T {
  return workspace.getConfiguration(SECTION).get<T>(name, fallback);
}

export function readPath(): readonly string[] {
  return read<readonly string[]>("path", []).map(fillIn);
}

export function readInterpreter(): string {
  return fillIn(read("interpreter", ""));
}

/** Remove the interpreter from every place in the settings that names one. */
export async function forgetInterpreter(): Promise<void> {
  const settings = workspace.getConfiguration(SECTION);
  const places = settings.inspect("interpreter");
  const targets = [
    [places?.globalValue, ConfigurationTarget.Global], [places?.workspaceValue, ConfigurationTarget.Workspace], [places?.workspaceFolderValue, ConfigurationTarget.WorkspaceFolder],
  ] as const;
  for (const [value, target] of targets) {
    if (value !== undefined) {
      await settings.update("interpreter", undefined, target);
    }
  }
}

export function readImportStrategy(): ImportStrategy {
  return read<ImportStrategy>("importStrategy", "fromEnvironment");
}

export function isHeatEnabled(): boolean {
  return read("heat.enable", true);
}

export function isCursorSynced(): boolean {
  return read("sass.syncCursor", true);
}

/** Everything under our heading, for the server: values only. */
export function readAll(): object {
  return JSON.parse(JSON.stringify(workspace.getConfiguration(SECTION))) as object;
}

function fillIn(text: string): string {
  const folder = workspace.workspaceFolders?.[0]?.uri.fsPath;
  const filled = folder === undefined ? text : text.replaceAll("${workspaceFolder}", folder);
  return filled.startsWith("~/") ? os.homedir() + filled.slice(1) : filled;
}
