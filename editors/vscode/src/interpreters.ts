/** The surroundings in which the server is looked for: settings, the Python extension, the path, and what interpreters say about themselves. */

import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { accessSync, constants, readdirSync, readFileSync, realpathSync, statSync } from "node:fs";
import * as path from "node:path";
import { type Event, type ExtensionContext, extensions, type LogOutputChannel, type Uri, workspace } from "vscode";
import { isInside, keepAbsolute, cleanSearchPaths } from "./folders";
import type { OwnEnvironment, Probe, Surroundings } from "./python";
import { readImportStrategy, readInterpreter, readPath } from "./settings";

/** An interpreter on a cold network drive of a busy machine still answers within it. */
const PROBE_LIMIT_MS = 60_000;

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
    ownEnvironments: listOwnEnvironments(context),
    find: (program) => findProgram(program),
    probe: (interpreter) => probe(context, interpreter, log),
  };
}

export async function findPythonEnvironments(): Promise<PythonEnvironments | undefined> {
  const extension = extensions.getExtension<{ readonly environments?: PythonEnvironments }>("ms-python.python");
  return extension && (await extension.activate()).environments;
}

export async function findSelectedInterpreter(log: LogOutputChannel): Promise<string | undefined> {
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

/** Packages of an environment for the server, with versions and hashes. */
export const requirementsOf = (context: ExtensionContext): string => context.asAbsolutePath(path.join(BUNDLED, "requirements.txt"));

/** Where this version of the extension has its environment: other packages, another folder. Undefined in a copy that was built without the server. */
export function ownEnvironmentFolder(context: ExtensionContext): string | undefined {
  try {
    const digest = createHash("sha256").update(readFileSync(requirementsOf(context))).digest("hex").slice(0, 16);
    return path.join(context.globalStorageUri.fsPath, `environment-${digest}`);
  } catch {
    return undefined;
  }
}

export const interpreterOf = (environment: string): string => path.join(environment, ...(process.platform === "win32" ? ["Scripts", "python.exe"] : ["bin", "python"]));

function listOwnEnvironments(context: ExtensionContext): readonly OwnEnvironment[] {
  const storage = context.globalStorageUri.fsPath;
  const present = ownEnvironmentFolder(context);
  let names: readonly string[];
  try {
    names = readdirSync(storage).filter((name) => /^environment(-[0-9a-f]{16})?$/.test(name)); // without a digest: made by 0.1.0
  } catch {
    return []; // nothing was ever stored
  }
  const all = names.map((name) => path.join(storage, name)).map((folder) => ({ interpreter: interpreterOf(folder), isOutdated: folder !== present }));
  return all.sort((one, other) => Number(one.isOutdated) - Number(other.isOutdated));
}

/** Only full paths are looked at: "." on the path would mean a program of the workspace. Of one that nobody trusts none is taken at all. */
export function findProgram(name: string, folders: readonly string[] = keepAbsolute(process.env.PATH ?? "").split(path.delimiter)): string | undefined {
  const file = process.platform === "win32" ? `${name}.exe` : name;
  const programs = folders.filter((folder) => folder !== "").map((folder) => path.join(folder, file)).filter(isProgram);
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

export function probe(context: ExtensionContext, interpreter: string, log: LogOutputChannel): Promise<Probe | undefined> {
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
