/** Which command starts the server. Nothing here touches the editor or the disk: the surroundings are handed in. */

export type ImportStrategy = "fromEnvironment" | "useBundled";

/** What an interpreter said about itself. */
export interface Probe {
  readonly version: readonly [number, number];
  /** Version of the server installed in it. */
  readonly server: string | null;
  /** Packages the bundled server needs and this interpreter has not. */
  readonly missing: readonly string[];
}

/** A Python environment that this extension made. */
export interface OwnEnvironment {
  readonly interpreter: string;
  /** Made by another version of the extension, with other packages. */
  readonly isOutdated: boolean;
}

export interface Surroundings {
  readonly path: readonly string[];
  readonly interpreter: string;
  readonly importStrategy: ImportStrategy;
  /** The interpreter selected in the Python extension. */
  readonly selectedInterpreter: string | undefined;
  /** The environments that this extension made, that of this version first. */
  readonly ownEnvironments: readonly OwnEnvironment[];
  /** Full path of a program on the path. */
  find(program: string): string | undefined;
  /** Undefined when it does not start. */
  probe(interpreter: string): Promise<Probe | undefined>;
}

export interface ServerCommand {
  readonly kind: "command";
  readonly command: string;
  readonly args: readonly string[];
  /** Whether the server is the extension's own copy; `args` are empty then. */
  readonly isBundled: boolean;
  /** Where it was found, in words. */
  readonly origin: string;
  /** Runs in an environment that another version of the extension made. */
  readonly isOutdated?: true;
}

export interface Nothing {
  readonly kind: "nothing";
  /** The reason in a few words, for the status bar. */
  readonly brief: string;
  /** A sentence about the interpreter that came closest. */
  readonly reason: string;
  readonly interpreter: string | undefined;
  readonly missing: readonly string[];
  /** A sentence for each interpreter that was tried. */
  readonly tried: readonly string[];
}

export type Resolution = ServerCommand | Nothing;

interface Candidate {
  readonly interpreter: string;
  readonly origin: string;
  readonly isOutdated?: true;
}

export const LEAST_VERSION: readonly [number, number] = [3, 11];

/** Names of interpreters on the path. A system whose python3 is too old often has a later one under its full name; on Windows there may be the launcher alone. */
export const PROGRAMS: readonly string[] = ["python3", "python", "python3.14", "python3.13", "python3.12", "python3.11", "py"];

const INSTALLED_PROGRAM = "gpa-lsp";

/** Find the command, in this order: path, interpreter, the Python extension's, our own environment, gpa-lsp and python3 on the path. */
export async function resolveServer(surroundings: Surroundings): Promise<Resolution> {
  const [program, ...args] = surroundings.path;
  if (program !== undefined) {
    return { kind: "command", command: program, args, isBundled: false, origin: "gpaLsp.path" };
  }
  if (surroundings.interpreter !== "") {
    return tryInterpreter(surroundings, { interpreter: surroundings.interpreter, origin: "gpaLsp.interpreter" });
  }
  const failed: Nothing[] = [];
  for (const candidate of listInterpreters(surroundings)) {
    const found = candidate === INSTALLED_PROGRAM ? findInstalled(surroundings) : await tryInterpreter(surroundings, candidate);
    if (found?.kind === "command") {
      return found;
    }
    if (found !== undefined) {
      failed.push(found);
    }
  }
  const closest = failed.find(({ interpreter }) => interpreter !== undefined) ?? failed[0]; // the one that can be helped by installing something
  return { ...(closest ?? { kind: "nothing", brief: "no Python", reason: "No Python was found.", interpreter: undefined, missing: [] }), tried: failed.map(({ reason }) => reason) };
}

function listInterpreters(surroundings: Surroundings): readonly (Candidate | typeof INSTALLED_PROGRAM)[] {
  const candidates: (Candidate | typeof INSTALLED_PROGRAM)[] = [];
  if (surroundings.selectedInterpreter !== undefined) {
    candidates.push({ interpreter: surroundings.selectedInterpreter, origin: "the Python extension" });
  }
  for (const { interpreter, isOutdated } of surroundings.ownEnvironments) {
    candidates.push({ interpreter, origin: "the environment made by this extension", ...(isOutdated ? { isOutdated } : {}) });
  }
  candidates.push(INSTALLED_PROGRAM);
  for (const program of PROGRAMS) {
    const interpreter = surroundings.find(program);
    if (interpreter !== undefined) {
      candidates.push({ interpreter, origin: `${program} on the path` });
    }
  }
  return candidates;
}

function findInstalled(surroundings: Surroundings): ServerCommand | undefined {
  const command = surroundings.importStrategy === "fromEnvironment" ? surroundings.find("gpa-lsp") : undefined;
  return command === undefined ? undefined : { kind: "command", command, args: ["serve"], isBundled: false, origin: "gpa-lsp on the path" };
}

async function tryInterpreter(surroundings: Surroundings, { interpreter, origin, isOutdated }: Candidate): Promise<Resolution> {
  const probe = await surroundings.probe(interpreter);
  if (probe === undefined) {
    return fail("Python does not start", `${interpreter} (${origin}) does not start.`);
  }
  const version = probe.version.join(".");
  if (isTooOld(probe.version)) {
    return fail(`Python ${version} is too old`, `${interpreter} (${origin}) is Python ${version}; the server needs ${LEAST_VERSION.join(".")} or later.`);
  }
  if (probe.server !== null && surroundings.importStrategy === "fromEnvironment") {
    return { kind: "command", command: interpreter, args: ["-P", "-m", "gpa_lsp", "serve"], isBundled: false, origin };
  }
  if (probe.missing.length === 0) {
    return { kind: "command", command: interpreter, args: [], isBundled: true, origin, ...(isOutdated ? { isOutdated } : {}) };
  }
  const reason = `${interpreter} (${origin}) has no gpa-lsp, and lacks what the server that comes with the extension needs: ${probe.missing.join(", ")}.`;
  return { ...fail("Python packages are missing", reason), interpreter, missing: probe.missing };
}

export function isTooOld([major, minor]: Probe["version"]): boolean {
  return major < LEAST_VERSION[0] || (major === LEAST_VERSION[0] && minor < LEAST_VERSION[1]);
}

function fail(brief: string, reason: string): Nothing {
  return { kind: "nothing", brief, reason, interpreter: undefined, missing: [], tried: [reason] };
}
