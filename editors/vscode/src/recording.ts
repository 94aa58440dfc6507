/** Launches of a program are recorded: which one, where the settings name none. */

import { type Memento, window, workspace } from "vscode";
import type { Connection } from "./client";
import { toProtocol } from "./placement";
import { SECTION } from "./settings";

const LAST_USED = "recordCommand";

/** Run the program of the settings, else one that is typed; the server asks before it runs. */
export async function recordLaunches(connection: Connection, memory: Memento): Promise<boolean | undefined> {
  const uri = window.activeTextEditor?.document.uri;
  const about = uri === undefined ? null : toProtocol(uri);
  const configured = workspace.getConfiguration(SECTION).get<string | readonly string[] | null>("emulation.recordCommand");
  if (configured !== undefined && configured !== null && configured.length > 0) {
    return connection.run<boolean>("gpaLsp.recordLaunches", about);
  }
  const typed = await window.showInputBox({
    title: "Record Launches by Running…",
    prompt: "A program and its arguments; its kernels run in the emulator, and saves emulate what it launched",
    placeHolder: "./app 1024",
    value: memory.get(LAST_USED, ""),
  });
  if (typed === undefined || typed.trim() === "") {
    return undefined;
  }
  await memory.update(LAST_USED, typed);
  return connection.run<boolean>("gpaLsp.recordLaunches", about, typed);
}
