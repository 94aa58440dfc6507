/** What hints, colours and lenses show: one metric, of the person's choice, kept by the server for the workspace. */

import { type QuickPickItem, window } from "vscode";
import type { Connection } from "./client";
import { toProtocol } from "./placement";
import type { Metric, Outcome, ShownMetric } from "./protocol";

interface MetricItem extends QuickPickItem {
  readonly metric: Metric;
}

/** Of what is shown where nobody has chosen. */
export const USUAL = "usual";

function aboutHere(): readonly string[] {
  const uri = window.activeTextEditor?.document.uri;
  return uri === undefined ? [] : [toProtocol(uri)];
}

/** Choose from what the kernels of this document have; what none of them has is said, and stands last. */
export async function chooseMetric(connection: Connection): Promise<void> {
  const metrics = (await connection.run<readonly Metric[] | null>("gpaLsp.listMetrics", ...aboutHere())) ?? [];
  const items: MetricItem[] = [...metrics.filter(({ isKnown }) => isKnown), ...metrics.filter(({ isKnown }) => !isKnown)].map((metric) => ({
    label: `$(${metric.isShown ? "check" : metric.isKnown ? "blank" : "circle-slash"}) ${metric.title}`,
    description: metric.detail,
    ...(metric.lack === "" ? {} : { detail: metric.lack }),
    metric,
  }));
  const chosen = items.length === 0 ? undefined : await window.showQuickPick(items, {
    title: "What Hints, Colours and Lenses Show", placeHolder: "Kept for this workspace", matchOnDescription: true,
  });
  if (chosen !== undefined) {
    const shown = await connection.run<ShownMetric | null>("gpaLsp.chooseMetric", chosen.metric.name, ...aboutHere());
    if (shown && shown.lack !== "") {
      window.setStatusBarMessage(`$(info) ${shown.title}: ${shown.lack}`, 6_000);
    }
  }
}

/** Bring the question whether a command may run back before the person; a notification that stands open is not asked twice. */
export async function answerMeasuring(connection: Connection, showNotifications: () => Thenable<unknown>): Promise<void> {
  const outcome = await connection.run<Outcome>("gpaLsp.answerMeasuring");
  if (outcome === "open") {
    await showNotifications();
  } else if (outcome === "nothing") {
    window.setStatusBarMessage("$(info) There is nothing to answer", 4_000);
  }
}
