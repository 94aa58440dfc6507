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

export interface Surroundings {
  readonly path: readonly string[];
  readonly interpreter: string;
  readonly importStrategy: ImportStrategy;
  /** The interpreter selected in the Python extension. */
  readonly selectedInterpreter: string | undefined;
  /** The interpreter of the environment that this extension made. */
  readonly ownInterpreter: string | undefined;
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
}

export interface Nothing {
  readonly kind: "nothing";
  /** A sentence about the interpreter that came closest. */
  readonly reason: string;
  readonly interpreter: string | undefined;
  readonly missing: readonly string[];
}

export type Resolution = ServerCommand | Nothing;

interface Candidate {
  readonly interpreter: string;
  readonly origin: string;
}

export const LEAST_VERSION: readonly [number, number] = [3, 11];

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
  let closest: Nothing | undefined;
  for (const candidate of listInterpreters(surroundings)) {
    if (candidate === INSTALLED_PROGRAM) {
      const installed = findInstalled(surroundings);
      if (installed !== undefined) {
        return installed;
      }
      continue;
    }
    const found = await tryInterpreter(surroundings, candidate);
    if (found.kind === "command") {
      return found;
    }
    closest = closer(closest, found);
  }
  return closest ?? { kind: "nothing", reason: "No Python was found.", interpreter: undefined, missing: [] };
}

function listInterpreters(surroundings: Surroundings): readonly (Candidate | typeof INSTALLED_PROGRAM)[] {
  const candidates: (Candidate | typeof INSTALLED_PROGRAM)[] = [];
  if (surroundings.selectedInterpreter !== undefined) {
    candidates.push({ interpreter: surroundings.selectedInterpreter, origin: "the Python extension" });
  }
  if (surroundings.ownInterpreter !== undefined) {
    candidates.push({ interpreter: surroundings.ownInterpreter, origin: "the environment made by this extension" });
  }
  candidates.push(INSTALLED_PROGRAM);
  for (const program of ["python3", "python"]) {
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

async function tryInterpreter(surroundings: Surroundings, { interpreter, origin }: Candidate): Promise<Resolution> {
  const probe = await surroundings.probe(interpreter);
  if (probe === undefined) {
    return { kind: "nothing", reason: `${interpreter} (${origin}) does not start.`, interpreter: undefined, missing: [] };
  }
  const [major, minor] = probe.version;
  if (major < LEAST_VERSION[0] || (major === LEAST_VERSION[0] && minor < LEAST_VERSION[1])) {
    const reason = `${interpreter} (${origin}) is Python ${major}.${minor}; the server needs ${LEAST_VERSION.join(".")} or later.`;
    return { kind: "nothing", reason, interpreter: undefined, missing: [] };
  }
  if (probe.server !== null && surroundings.importStrategy === "fromEnvironment") {
    return { kind: "command", command: interpreter, args: ["-P", "-m", "gpa_lsp", "serve"], isBundled: false, origin };
  }
  if (probe.missing.length === 0) {
    return { kind: "command", command: interpreter, args: [], isBundled: true, origin };
  }
  const reason = `${interpreter} (${origin}) has no gpa-lsp, and lacks what the server that comes with the extension needs: ${probe.missing.join(", ")}.`;
  return { kind: "nothing", reason, interpreter, missing: probe.missing };
}

/** The one that can be helped by installing something, and the first among equals. */
function closer(present: Nothing | undefined, next: Resolution & { kind: "nothing" }): Nothing {
  return present === undefined || (present.interpreter === undefined && next.interpreter !== undefined) ? next : present;
}
