/** The surroundings in which the server is looked for: settings, the Python extension, the path, and what interpreters say about themselves. */

import { execFile } from "node:child_process";
import { accessSync, constants, statSync } from "node:fs";
import * as path from "node:path";
import { type Event, type ExtensionContext, extensions, type LogOutputChannel, type Uri, workspace } from "vscode";
import type { Probe, Surroundings } from "./python";
import { readImportStrategy, readInterpreter, readPath } from "./settings";

const PROBE_LIMIT_MS = 15_000;

/** The part of the Python extension's interface that is used here. */
interface PythonEnvironments {
  getActiveEnvironmentPath(resource?: Uri): { readonly path: string };
  resolveEnvironment(environment: { readonly path: string }): Promise<{ readonly executable: { readonly uri?: Uri } } | undefined>;
  readonly onDidChangeActiveEnvironmentPath: Event<unknown>;
}

export const BUNDLED = "bundled";

export async function readSurroundings(context: ExtensionContext, log: LogOutputChannel): Promise<Surroundings> {
  return {
    path: readPath(),
    interpreter: readInterpreter(),
    importStrategy: readImportStrategy(),
    selectedInterpreter: await findSelectedInterpreter(log),
    ownInterpreter: findOwnInterpreter(context),
    find: findProgram,
    probe: (interpreter) => probe(context, interpreter, log),
  };
}

export async function findPythonEnvironments(): Promise<PythonEnvironments | undefined> {
  const extension = extensions.getExtension<{ readonly environments?: PythonEnvironments }>("ms-python.python");
  return extension && (await extension.activate()).environments;
}

async function findSelectedInterpreter(log: LogOutputChannel): Promise<string | undefined> {
  try {
    const environments = await findPythonEnvironments();
    const folder = workspace.workspaceFolders?.[0]?.uri;
    const resolved = environments && (await environments.resolveEnvironment(environments.getActiveEnvironmentPath(folder)));
    const interpreter = resolved?.executable.uri?.fsPath;
    if (interpreter !== undefined && !workspace.isTrusted && isInWorkspace(interpreter)) {
      log.info(`${interpreter} is part of this workspace, which is not trusted: passed over`);
      return undefined;
    }
    return interpreter;
  } catch (error) {
    log.warn(`The Python extension gave no interpreter: ${String(error)}`);
    return undefined;
  }
}

function isInWorkspace(file: string): boolean {
  return (workspace.workspaceFolders ?? []).some((folder) => !path.relative(folder.uri.fsPath, file).startsWith(".."));
}

export function ownEnvironmentFolder(context: ExtensionContext): string {
  return path.join(context.globalStorageUri.fsPath, "environment");
}

function findOwnInterpreter(context: ExtensionContext): string | undefined {
  const inside = process.platform === "win32" ? ["Scripts", "python.exe"] : ["bin", "python"];
  const interpreter = path.join(ownEnvironmentFolder(context), ...inside);
  return isProgram(interpreter) ? interpreter : undefined;
}

/** Only full paths are looked at: "." on the path would mean a program of the workspace. */
export function findProgram(name: string): string | undefined {
  const folders = (process.env.PATH ?? "").split(path.delimiter).filter((folder) => path.isAbsolute(folder));
  const names = process.platform === "win32" ? [`${name}.exe`] : [name];
  return folders.flatMap((folder) => names.map((one) => path.join(folder, one))).find(isProgram);
}

function isProgram(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return statSync(file).isFile();
  } catch {
    return false;
  }
}

function probe(context: ExtensionContext, interpreter: string, log: LogOutputChannel): Promise<Probe | undefined> {
  const script = context.asAbsolutePath(path.join(BUNDLED, "tool", "probe.py"));
  return new Promise((resolve) => {
    execFile(interpreter, [script], { timeout: PROBE_LIMIT_MS, cwd: context.extensionPath }, (error, stdout, stderr) => {
      if (error !== null) {
        log.warn(`${interpreter}: ${error.message} ${stderr}`);
        resolve(undefined);
        return;
      }
      try {
        resolve(JSON.parse(stdout) as Probe);
      } catch {
        log.warn(`${interpreter} printed ${stdout.slice(0, 200)}`);
        resolve(undefined);
      }
    });
  });
}
