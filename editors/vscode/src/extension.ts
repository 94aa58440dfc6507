/** The client: it starts the server, draws what it says, and turns keys into questions. It computes nothing. */

import { commands, ConfigurationTarget, type ExtensionContext, type TextDocument, type Uri, window, workspace } from "vscode";
import { ChainTree, openLink } from "./chain";
import { Connection } from "./client";
import { chooseColumns, listInstructions } from "./columns";
import { HeatView } from "./heat";
import { LANGUAGES, mayHoldKernels } from "./concern";
import { EnvironmentMaker } from "./environment";
import { findPythonEnvironments } from "./interpreters";
import { JumpMemory } from "./jumpMemory";
import { goToHotLine, jump } from "./jumps";
import { listHotSpots, listKernels } from "./lists";
import { chooseMeasurement } from "./measurements";
import { answerMeasuring, chooseMetric } from "./metrics";
import { MeasuringOutput } from "./output";
import { ReportPanel } from "./page";
import { isSass, toProtocol } from "./placement";
import { type HeatMark, SASS_SCHEME, type Status } from "./protocol";
import { recordLaunches } from "./recording";
import { CursorSync, toggleSass } from "./sass";
import { isHeatEnabled, readInterpreter, readPath, SECTION, SERVER_SETTINGS } from "./settings";
import { SetUp } from "./setUp";
import { showMenu, StatusItem } from "./status";
import { TieView } from "./ties";

/** What other extensions, and the tests, can see. */
export interface Api {
  readonly isRunning: boolean;
  readonly absence: Connection["absence"];
  readonly status: Status | undefined;
  readonly statusBar: readonly string[];
  readonly measuringOutput: string;
  heatOf(uri: Uri): { readonly marks: readonly HeatMark[]; readonly stale: readonly number[]; readonly unverified: readonly number[]; readonly simulated: readonly number[] };
  readonly lit: CursorSync["lit"];
  readonly ties: TieView["shown"];
  readonly chain: ChainTree;
  readonly report: ReportPanel;
}

let connection: Connection | undefined;

/** Commands that ask the server nothing. All others start it, and show why where they cannot. */
const WITHOUT_SERVER = ["gpa.setUp", "gpa.createEnvironment", "gpa.restart", "gpa.showOutput", "gpa.openLink", "gpa.toggleHeat"];

/** What the server reads besides sources. */
const PROFILES = "**/*.{ncu-rep,ncu-repz,gpa-profile.json,launch.toml}";

/** Settings of users who have set up what a server does, wherever the profiles are. */
const SET_UP = ["profile.command", "profileGlobs", "emulation.recordCommand"];

export function activate(context: ExtensionContext): Api {
  const log = window.createOutputChannel("GPU Performance Advisor", { log: true });
  const environment = new EnvironmentMaker(context, log);
  const server = new Connection(context, log, environment);
  const memory = new JumpMemory();
  const heat = new HeatView(server);
  const sync = new CursorSync(server);
  const ties = new TieView(server);
  const chain = new ChainTree(server);
  const status = new StatusItem(server);
  const output = new MeasuringOutput(server);
  const report = new ReportPanel(server);
  const setUp = new SetUp(server, environment);
  context.subscriptions.push(log, environment, server, heat, sync, ties, chain, status, output, report, setUp);
  connection = server;

  const forward = (command: string) => () => server.run(command);
  // Those that package.json does not list are behind the status bar and in pages of ours
  const handlers: Readonly<Record<string, (...args: never[]) => unknown>> = {
    "gpa.goToCause": () => jump(server, memory, "gpaLsp.findCauses"),
    "gpa.goToVictim": () => jump(server, memory, "gpaLsp.findVictims"),
    "gpa.toggleSass": () => toggleSass(server, memory),
    "gpa.nextHotLine": () => goToHotLine(server, heat, 1),
    "gpa.previousHotLine": () => goToHotLine(server, heat, -1),
    "gpa.listHotSpots": () => (window.activeTextEditor !== undefined && isSass(window.activeTextEditor.document.uri) ? listInstructions(server) : listHotSpots(server)),
    "gpa.listKernels": () => listKernels(server, (mangled) => report.show(mangled)),
    "gpa.chooseColumns": () => chooseColumns(server),
    "gpa.chooseMetric": () => chooseMetric(server),
    "gpa.answerMeasuring": () => answerMeasuring(server, () => commands.executeCommand("notifications.showList")),
    "gpa.showChain": () => chain.showChain(),
    "gpa.openLink": openLink,
    "gpa.showPage": () => report.show(),
    "gpa.exportPage": (target?: Uri) => report.export(target),
    "gpa.showPrediction": () => showPrediction(report),
    "gpa.showHistory": forward("gpaLsp.showHistory"),
    "gpa.measure": () => measure(server),
    "gpa.simulate": () => simulate(server),
    "gpa.compareSimulated": () => report.showComparison(),
    "gpa.recordLaunches": () => recordLaunches(server, context.workspaceState),
    "gpa.cancelMeasuring": forward("gpaLsp.cancelMeasuring"),
    "gpa.chooseMeasurement": (mangled?: string) => chooseMeasurement(server, mangled),
    "gpa.toggleHeat": () => workspace.getConfiguration(SECTION).update("heat.enable", !isHeatEnabled(), ConfigurationTarget.Global),
    "gpa.showAllHints": async () => {
      const areAll = await server.run<boolean>("gpaLsp.showAllHints");
      window.setStatusBarMessage(`$(info) ${areAll === true ? "Every line above the threshold has its hint" : "As many hints as a screen bears"}`, 4_000);
    },
    "gpa.chooseSources": forward("gpaLsp.chooseSources"),
    "gpa.restart": () => server.restart(),
    "gpa.showOutput": () => (["measuring", "recording"].includes(status.present?.state ?? "") || output.text !== "" ? output.show() : log.show(true)),
    "gpa.menu": () => showMenu(status.present),
    "gpa.setUp": () => setUp.show(),
    "gpa.createEnvironment": () => setUp.createEnvironment(),
  };
  for (const [command, handler] of Object.entries(handlers)) {
    const run = handler as (...args: unknown[]) => unknown;
    context.subscriptions.push(commands.registerCommand(command, WITHOUT_SERVER.includes(command) ? run : async (...args: unknown[]) => {
      await server.start();
      return server.absence === undefined ? run(...args) : setUp.show();
    }));
  }
  context.subscriptions.push(
    workspace.onDidChangeConfiguration((event) => {
      if (SERVER_SETTINGS.some((name) => event.affectsConfiguration(name))) {
        void server.restartIfWanted();
      } else if (event.affectsConfiguration(SECTION)) {
        void server.sendSettings();
      }
    }),
    workspace.onDidGrantWorkspaceTrust(() => void server.run("gpaLsp.setTrust", true)),
  );
  startWhenConcerned(context, server);
  void followPythonExtension(context, server);
  return {
    get isRunning() { return server.isRunning; },
    get absence() { return server.absence; },
    get status() { return status.present; },
    get statusBar() { return status.texts; },
    get measuringOutput() { return output.text; },
    get lit() { return sync.lit; },
    get ties() { return ties.shown; },
    heatOf: (uri) => ({ marks: heat.marksOf(uri), stale: heat.staleLinesOf(uri), unverified: heat.unverifiedLinesOf(uri), simulated: heat.simulatedLinesOf(uri) }),
    chain,
    report,
  };
}

/** Start the server with the first text that may hold GPU code or the first profile: an editor of Python or C++ alone costs no process. */
function startWhenConcerned(context: ExtensionContext, server: Connection): void {
  const watcher = workspace.createFileSystemWatcher(PROFILES, false, true, true);
  const start = () => {
    for (const disposable of listeners) {
      disposable.dispose();
    }
    void server.start();
  };
  const look = (document: TextDocument) => {
    if (["file", "untitled", SASS_SCHEME].includes(document.uri.scheme) && LANGUAGES.includes(document.languageId) && mayHoldKernels(document.languageId, document.getText())) {
      start();
    }
  };
  const listeners = [watcher, watcher.onDidCreate(start), workspace.onDidOpenTextDocument(look), workspace.onDidSaveTextDocument(look)];
  context.subscriptions.push(...listeners);
  const settings = workspace.getConfiguration(SECTION);
  if (SET_UP.some((name) => isSet(settings.inspect(name)))) {
    start();
    return;
  }
  workspace.textDocuments.forEach(look);
  void Promise.resolve(workspace.findFiles(PROFILES, undefined, 1)).then((found) => found.length > 0 && start()); // in a large workspace it may take minutes
}

function isSet(places: { readonly globalValue?: unknown; readonly workspaceValue?: unknown; readonly workspaceFolderValue?: unknown } | undefined): boolean {
  return [places?.globalValue, places?.workspaceValue, places?.workspaceFolderValue].some((value) => value !== undefined);
}

async function showPrediction(report: ReportPanel): Promise<void> {
  const uri = window.activeTextEditor?.document.uri;
  await (uri === undefined ? window.showInformationMessage("Open a CUDA source whose launches are described.") : report.showPrediction(toProtocol(uri)));
}

function simulate(server: Connection): Promise<boolean | undefined> {
  const uri = window.activeTextEditor?.document.uri;
  return uri === undefined ? server.run("gpaLsp.simulate") : server.run("gpaLsp.simulate", toProtocol(uri));
}

function measure(server: Connection): Promise<boolean | undefined> {
  const uri = window.activeTextEditor?.document.uri;
  return uri === undefined ? server.run("gpaLsp.measure") : server.run("gpaLsp.measure", toProtocol(uri));
}

/** Another interpreter was selected: it may have, or be, another server. */
async function followPythonExtension(context: ExtensionContext, server: Connection): Promise<void> {
  const environments = await findPythonEnvironments().catch(() => undefined);
  const listener = environments?.onDidChangeActiveEnvironmentPath(() => {
    if (readPath().length === 0 && readInterpreter() === "") {
      void server.restartIfWanted();
    }
  });
  if (listener !== undefined) {
    context.subscriptions.push(listener);
  }
}

export async function deactivate(): Promise<void> {
  await connection?.stop();
}
