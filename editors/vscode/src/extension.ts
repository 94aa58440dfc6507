/** The client: it starts the server, draws what it says, and turns keys into questions. It computes nothing. */

import { commands, ConfigurationTarget, type ExtensionContext, type Uri, window, workspace } from "vscode";
import { ChainTree, openLink } from "./chain";
import { Connection } from "./client";
import { chooseColumns, listInstructions, listInstructionsBy } from "./columns";
import { HeatView } from "./heat";
import { findPythonEnvironments } from "./interpreters";
import { JumpMemory } from "./jumpMemory";
import { chooseCause, goBack, goToHotLine, jump } from "./jumps";
import { listHotSpots, listKernels, showKernel } from "./lists";
import { answerMeasuring, chooseMetric } from "./metrics";
import { MeasuringOutput } from "./output";
import { ReportPanel } from "./page";
import { toProtocol } from "./placement";
import type { HeatMark, Status } from "./protocol";
import { recordLaunches } from "./recording";
import { CursorSync, toggleSass } from "./sass";
import { areTiesShown, isHeatEnabled, readInterpreter, readPath, SECTION, SERVER_SETTINGS } from "./settings";
import { showMenu, StatusItem } from "./status";
import { TieView } from "./ties";

/** What other extensions, and the tests, can see. */
export interface Api {
  readonly isRunning: boolean;
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

export function activate(context: ExtensionContext): Api {
  const log = window.createOutputChannel("GPU Performance Advisor", { log: true });
  const server = new Connection(context, log);
  const memory = new JumpMemory();
  const heat = new HeatView(server);
  const sync = new CursorSync(server);
  const ties = new TieView(server);
  const chain = new ChainTree(server);
  const status = new StatusItem(server);
  const output = new MeasuringOutput(server);
  const report = new ReportPanel(server);
  context.subscriptions.push(log, server, heat, sync, ties, chain, status, output, report);
  connection = server;

  const forward = (command: string) => () => server.run(command);
  const handlers: Readonly<Record<string, (...args: never[]) => unknown>> = {
    "gpa.goToCause": () => jump(server, memory, "gpaLsp.findCauses"),
    "gpa.goToVictim": () => jump(server, memory, "gpaLsp.findVictims"),
    "gpa.chooseCause": () => chooseCause(server, memory),
    "gpa.toggleSass": () => toggleSass(server, memory),
    "gpa.back": () => goBack(memory),
    "gpa.nextHotLine": () => goToHotLine(server, heat, 1),
    "gpa.previousHotLine": () => goToHotLine(server, heat, -1),
    "gpa.listHotSpots": () => listHotSpots(server),
    "gpa.listKernels": () => listKernels(server),
    "gpa.listInstructions": () => listInstructions(server, memory),
    "gpa.listInstructionsBy": () => listInstructionsBy(server, memory),
    "gpa.chooseColumns": () => chooseColumns(server),
    "gpa.chooseMetric": () => chooseMetric(server),
    "gpa.answerMeasuring": () => answerMeasuring(server, () => commands.executeCommand("notifications.showList")),
    "gpa.toggleTies": () => workspace.getConfiguration(SECTION).update("sass.colours", !areTiesShown(), ConfigurationTarget.Global),
    "gpa.showChain": () => chain.showChain(),
    "gpa.refreshChain": () => chain.showChain(),
    "gpa.openLink": openLink,
    "gpa.showKernel": () => showKernel(server),
    "gpa.showReport": forward("gpaLsp.showReport"),
    "gpa.showPage": () => report.show(),
    "gpa.showKernelPage": () => showKernel(server, (mangled) => report.show(mangled)),
    "gpa.exportPage": (target?: Uri) => report.export(target),
    "gpa.showPrediction": () => showPrediction(report),
    "gpa.showHistory": forward("gpaLsp.showHistory"),
    "gpa.measure": () => measure(server),
    "gpa.simulate": () => simulate(server),
    "gpa.compareSimulated": () => report.showComparison(),
    "gpa.recordLaunches": () => recordLaunches(server, context.workspaceState),
    "gpa.cancelMeasuring": forward("gpaLsp.cancelMeasuring"),
    "gpa.pinBaseline": forward("gpaLsp.pinBaseline"),
    "gpa.unpinBaseline": forward("gpaLsp.unpinBaseline"),
    "gpa.toggleHeat": () => workspace.getConfiguration(SECTION).update("heat.enable", !isHeatEnabled(), ConfigurationTarget.Global),
    "gpa.showAllHints": async () => {
      const areAll = await server.run<boolean>("gpaLsp.showAllHints");
      window.setStatusBarMessage(`$(info) ${areAll === true ? "Every line above the threshold has its hint" : "As many hints as a screen bears"}`, 4_000);
    },
    "gpa.chooseSources": forward("gpaLsp.chooseSources"),
    "gpa.reload": forward("gpaLsp.reload"),
    "gpa.restart": () => server.restart(),
    "gpa.showOutput": () => (["measuring", "recording"].includes(status.present?.state ?? "") || output.text !== "" ? output.show() : log.show(true)),
    "gpa.menu": () => showMenu(status.present),
  };
  for (const [command, handler] of Object.entries(handlers)) {
    context.subscriptions.push(commands.registerCommand(command, handler as (...args: unknown[]) => unknown));
  }
  context.subscriptions.push(
    workspace.onDidChangeConfiguration((event) => {
      if (SERVER_SETTINGS.some((name) => event.affectsConfiguration(name))) {
        void server.restart();
      } else if (event.affectsConfiguration(SECTION)) {
        void server.sendSettings();
      }
    }),
    workspace.onDidGrantWorkspaceTrust(() => void server.run("gpaLsp.setTrust", true)),
  );
  void server.restart();
  void followPythonExtension(context, server);
  return {
    get isRunning() { return server.isRunning; },
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
      void server.restart();
    }
  });
  if (listener !== undefined) {
    context.subscriptions.push(listener);
  }
}

export async function deactivate(): Promise<void> {
  await connection?.stop();
}
