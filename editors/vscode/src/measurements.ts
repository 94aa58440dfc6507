/** Which measurement of a kernel is shown, and what later ones are compared with. */

import { type QuickInputButton, QuickPickItemKind, type QuickPickItem, ThemeIcon, window } from "vscode";
import type { Connection } from "./client";
import { toProtocol } from "./placement";
import type { Measurement } from "./protocol";

const PIN_BUTTON: QuickInputButton = { iconPath: new ThemeIcon("pin"), tooltip: "Compare Later Measurements With This One" };

interface Choice extends QuickPickItem {
  readonly run?: readonly [command: string, ...args: unknown[]];
  readonly measurement?: Measurement;
}

/** Choose among the measurements of the kernel with a mangled name, or of the one the cursor is in. */
export async function chooseMeasurement(connection: Connection, mangled?: string): Promise<void> {
  const editor = window.activeTextEditor;
  const about = mangled === undefined ? (editor === undefined ? [] : [toProtocol(editor.document.uri), editor.selection.active.line]) : [mangled];
  const found = (await connection.run<readonly Measurement[] | null>("gpaLsp.listMeasurements", ...about)) ?? [];
  const list = window.createQuickPick<Choice>();
  list.title = "Measurement That Is Shown";
  list.placeholder = found.length === 0 ? "No measured kernel is at the cursor" : "A newer measurement of the kernel replaces your choice";
  list.items = [
    ...found.map((one) => ({
      label: one.text,
      ...(one.isShown ? { iconPath: new ThemeIcon("check") } : {}),
      buttons: [PIN_BUTTON],
      run: ["gpaLsp.chooseMeasurement", one.mangled, one.profile] as const,
      measurement: one,
    })),
    { label: "what later measurements of all kernels are compared with", kind: QuickPickItemKind.Separator },
    { label: "$(pin) Compare With What Is Shown Now", run: ["gpaLsp.pinBaseline"] },
    { label: "$(history) Compare Each With the One Before", run: ["gpaLsp.unpinBaseline"] },
  ];
  const chosen = await new Promise<Choice["run"]>((resolve) => {
    list.onDidAccept(() => resolve((list.selectedItems[0] ?? list.activeItems[0])?.run));
    list.onDidTriggerItemButton(({ item }) => resolve(["gpaLsp.pinBaseline", item.measurement?.mangled, item.measurement?.profile]));
    list.onDidHide(() => resolve(undefined));
    list.show();
  });
  list.dispose();
  if (chosen !== undefined) {
    await connection.run(...chosen);
  }
}
