/** The Python environment that this extension makes for its server: in its storage, with pinned packages, after consent. */

import { type ChildProcess, execFile, spawn } from "node:child_process";
import { mkdir, mkdtemp, readFile, rename, rm, utimes } from "node:fs/promises";
import * as os from "node:os";
import * as path from "node:path";
import { createInterface } from "node:readline";
import { type CancellationToken, type Disposable, type ExtensionContext, type LogOutputChannel, ProgressLocation, window } from "vscode";
import { cleanSearchPaths } from "./folders";
import { BUNDLED, findProgram, findSelectedInterpreter, interpreterOf, ownEnvironmentFolder, probe, requirementsOf } from "./interpreters";
import { isTooOld, LEAST_VERSION, PROGRAMS } from "./python";
import { forgetInterpreter, readInterpreter } from "./settings";

const LEAST = LEAST_VERSION.join(".");

/** Where interpreters lie that the path of a desktop or of a remote session often lacks. */
const USUAL_FOLDERS = ["/usr/local/bin", "/usr/bin", "/opt/homebrew/bin", path.join(os.homedir(), ".local", "bin")];

const INSTALLING: Partial<Record<NodeJS.Platform, string>> = {
  linux: "Install one with the system's package manager (Debian, Ubuntu: sudo apt install python3; Fedora, RHEL: sudo dnf install python3.12), then look again.",
  darwin: "Install one from python.org or with Homebrew (brew install python), then look again.",
  win32: "Install one from python.org or the Microsoft Store, then look again.",
};

/** Why an environment was not made, in a sentence for the user. */
class Failure extends Error {}

export class EnvironmentMaker implements Disposable {
  readonly #context: ExtensionContext;
  readonly #log: LogOutputChannel;
  #child: ChildProcess | undefined;
  #isBusy = false;

  constructor(context: ExtensionContext, log: LogOutputChannel) {
    this.#context = context;
    this.#log = log;
  }

  /** Ask for consent and make the environment. True once there is one that the server can run in. */
  async create(): Promise<boolean> {
    const python = this.#isBusy ? undefined : await this.#choosePython();
    if (python === undefined || !(await this.#agree(python))) {
      return false;
    }
    const isMade = await this.#make(python, "Creating the Python environment");
    if (isMade && readInterpreter() !== "") {
      await forgetInterpreter(); // the consent says so: nothing else is tried beside this setting
    }
    return isMade;
  }

  /** Make anew what another version of the extension made with the same consent. */
  renew(interpreter: string): Promise<boolean> {
    return this.#isBusy ? Promise.resolve(false) : this.#make(interpreter, "Renewing the Python environment for this version of the extension");
  }

  dispose(): void {
    this.#stop();
  }

  async #choosePython(): Promise<string | undefined> {
    for (;;) {
      const found = await this.#findPython();
      if (found !== undefined) {
        return found;
      }
      const advice = INSTALLING[process.platform] ?? INSTALLING.linux;
      const chosen = await window.showWarningMessage(`No Python ${LEAST} or later was found to make an environment with. ${advice}`, "Look Again", "Choose Python…");
      if (chosen === undefined) {
        return undefined;
      }
      if (chosen === "Choose Python…") {
        const picked = (await window.showOpenDialog({ title: `A Python interpreter, ${LEAST} or later`, openLabel: "Choose" }))?.[0]?.fsPath;
        if (picked !== undefined && (await this.#isSuitable(picked))) {
          return picked;
        }
      }
    }
  }

  async #findPython(): Promise<string | undefined> {
    const selected = await findSelectedInterpreter(this.#log);
    const all = [readInterpreter() || undefined, selected, ...PROGRAMS.map((name) => findProgram(name)), ...PROGRAMS.map((name) => findProgram(name, USUAL_FOLDERS))];
    for (const python of new Set(all.filter((one) => one !== undefined))) {
      if (await this.#isSuitable(python)) {
        return python;
      }
    }
    return undefined;
  }

  async #isSuitable(python: string): Promise<boolean> {
    const answer = await probe(this.#context, python, this.#log);
    return answer !== undefined && !isTooOld(answer.version);
  }

  async #agree(python: string): Promise<boolean> {
    const set = readInterpreter();
    const sentences = [
      `${python} makes a virtual environment in ${ownEnvironmentFolder(this.#context) ?? this.#context.globalStorageUri.fsPath}`,
      "and installs NumPy, Protocol Buffers, tree-sitter, NVIDIA's nvdisasm (under NVIDIA's licence) and what they need: fixed versions from the Python package index, checked by their hashes.",
      "An update of the extension renews it. Nothing else on this machine changes.",
      ...(set === "" ? [] : [`The setting gpaLsp.interpreter (${set}) is removed, so that the environment is used.`]),
    ];
    return (await window.showInformationMessage(`Create a Python environment for the GPU advisor? ${sentences.join(" ")}`, "Create")) !== undefined;
  }

  async #make(python: string, title: string): Promise<boolean> {
    this.#isBusy = true;
    try {
      return await window.withProgress({ location: ProgressLocation.Notification, title, cancellable: true }, async (progress, token) => {
        await this.#build(python, token, (message, share) => progress.report({ message, increment: 100 * share }));
        return !token.isCancellationRequested;
      });
    } catch (error) {
      const sentence = error instanceof Failure ? error.message : explainSystemError(error, this.#context.globalStorageUri.fsPath);
      this.#log.error(`${title}: ${sentence}`);
      void this.#tellFailure(sentence);
      return false;
    } finally {
      this.#isBusy = false;
    }
  }

  async #tellFailure(sentence: string): Promise<void> {
    if ((await window.showErrorMessage(`The Python environment was not made. ${sentence}`, "Show Log")) !== undefined) {
      this.#log.show(true);
    }
  }

  /** Build it beside its place and move it there when it is whole: what is found there can be used. */
  async #build(python: string, token: CancellationToken, tell: (message: string, share: number) => void): Promise<void> {
    const target = ownEnvironmentFolder(this.#context);
    if (target === undefined) {
      throw new Failure("This copy of the extension was built without its server: install a released VSIX file, or run npm run package in editors/vscode.");
    }
    const storage = path.dirname(target);
    await mkdir(storage, { recursive: true });
    const partial = await mkdtemp(path.join(storage, "partial-"));
    try {
      await this.#runTool(python, partial, token, tell);
      if (!token.isCancellationRequested) {
        await this.#check(partial);
        await this.#moveInPlace(partial, target);
        await utimes(target, new Date(), new Date()); // used now; what nobody uses for a month is removed when the server starts
      }
    } finally {
      await rm(partial, { recursive: true, force: true, maxRetries: 3 }).catch((error: unknown) => this.#log.warn(String(error)));
    }
  }

  async #runTool(python: string, folder: string, token: CancellationToken, tell: (message: string, share: number) => void): Promise<void> {
    const requirements = requirementsOf(this.#context);
    const packages = (await readFile(requirements, "utf8")).match(/^[\w.-]+==/gm)?.length ?? 1;
    const tool = this.#context.asAbsolutePath(path.join(BUNDLED, "tool", "make_environment.py"));
    this.#log.info(`${python} makes an environment in ${folder}`);
    const child = spawn(python, ["-I", "-u", tool, folder, requirements], {
      cwd: this.#context.extensionPath, env: cleanSearchPaths(process.env), stdio: ["ignore", "pipe", "pipe"], detached: process.platform !== "win32",
    });
    this.#child = child;
    const cancelling = token.onCancellationRequested(() => this.#stop());
    let begun = 0;
    createInterface({ input: child.stdout }).on("line", (line) => {
      this.#log.info(line);
      const name = /^Collecting ([\w.-]+)/.exec(line)?.[1];
      tell(name === undefined ? (/^(Making|Installing|Fetching)\b[^:(]*/.exec(line)?.[0] ?? "") : `${name} (${++begun} of ${packages})`, name === undefined ? 0 : 1 / (packages + 1));
    });
    let last = "";
    createInterface({ input: child.stderr }).on("line", (line) => {
      this.#log.warn(line);
      last = line.trim() || last;
    });
    const code = await new Promise<number | null>((resolve, reject) => {
      child.once("error", reject);
      child.once("close", resolve);
    }).finally(() => {
      cancelling.dispose();
      this.#child = undefined;
    });
    if (code !== 0 && !token.isCancellationRequested) {
      throw new Failure(last || `${python} ended with status ${code}.`);
    }
  }

  async #check(folder: string): Promise<void> {
    const answer = await probe(this.#context, interpreterOf(folder), this.#log);
    if (answer === undefined || answer.missing.length > 0) {
      throw new Failure(answer === undefined ? "Its interpreter does not start." : `It lacks ${answer.missing.join(", ")}.`);
    }
  }

  async #moveInPlace(partial: string, target: string): Promise<void> {
    const former = `${partial}-former`;
    await rename(target, former).catch(() => undefined); // usually there is none; on Windows one that runs stays
    try {
      await rename(partial, target);
    } catch {
      await this.#check(target); // another window was first
    } finally {
      await rm(former, { recursive: true, force: true, maxRetries: 3 }).catch((error: unknown) => this.#log.warn(String(error)));
    }
  }

  /** End the tool and pip, which it started. */
  #stop(): void {
    const pid = this.#child?.pid;
    if (pid === undefined) {
      return;
    }
    if (process.platform === "win32") {
      execFile("taskkill", ["/pid", String(pid), "/T", "/F"], () => undefined);
      return;
    }
    try {
      process.kill(-pid, "SIGTERM");
    } catch {
      // it has just ended
    }
  }
}

function explainSystemError(error: unknown, folder: string): string {
  const code = (error as NodeJS.ErrnoException | undefined)?.code;
  if (code === "ENOSPC" || code === "EDQUOT") {
    return `There is no space left for it in ${folder}: it needs about 500 MB.`;
  }
  return code === "EACCES" || code === "EROFS" || code === "EPERM" ? `${folder} cannot be written to.` : String(error);
}
