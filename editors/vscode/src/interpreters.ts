/** The surroundings in which the server is looked for: settings, the Python extension, the path, and what interpreters say about themselves. */

import { execFile } from "node:child_process";
import { accessSync, constants, realpathSync, statSync } from "node:fs";
import * as path from "node:path";
import { type Event, type ExtensionContext, extensions, type LogOutputChannel, type Uri, workspace } from "vscode";
import { isInside, keepAbsolute, cleanSearchPaths } from "./folders";
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

/** By its own path, or where links on the way to it lead. The file itself may be a link, as that of an environment to the interpreter it was made with. */
function isInWorkspace(file: string): boolean {
  const real = path.join(followLinks(path.dirname(file)), path.basename(file));
  const folders = (workspace.workspaceFolders ?? []).map((folder) => folder.uri.fsPath);
  return folders.some((folder) => isInside(folder, file) || isInside(followLinks(folder), real));
}

function followLinks(folder: string): string {
  try {
    return realpathSync.native(folder);
  } catch {
    return folder;
  }
}

export function ownEnvironmentFolder(context: ExtensionContext): string {
  return path.join(context.globalStorageUri.fsPath, "environment");
}

function findOwnInterpreter(context: ExtensionContext): string | undefined {
  const inside = process.platform === "win32" ? ["Scripts", "python.exe"] : ["bin", "python"];
  const interpreter = path.join(ownEnvironmentFolder(context), ...inside);
  return isProgram(interpreter) ? interpreter : undefined;
}

/** Only full paths are looked at: "." on the path would mean a program of the workspace. Of one that nobody trusts none is taken at all. */
export function findProgram(name: string): string | undefined {
  const folders = keepAbsolute(process.env.PATH ?? "").split(path.delimiter).filter((folder) => folder !== "");
  const file = process.platform === "win32" ? `${name}.exe` : name;
  const programs = folders.map((folder) => path.join(folder, file)).filter(isProgram);
  return programs.find((program) => workspace.isTrusted || !isInWorkspace(program));
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
    const env = cleanSearchPaths(process.env);
    execFile(interpreter, [script], { timeout: PROBE_LIMIT_MS, cwd: context.extensionPath, env }, (error, stdout, stderr) => {
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
