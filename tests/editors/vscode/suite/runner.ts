/** Tests one after the other, each reported by name; one that fails does not keep the next from running. */

import * as vscode from "vscode";
import { report, screenshot } from "./desk";

const LIMIT_MS = 600_000 * Number(process.env.GPA_LSP_TEST_PATIENCE ?? 1);

export type Test = readonly [name: string, body: () => Promise<void>];

/** Run them. The editor goes on from where the test before left it, as for a person at work. */
export async function runTests(tests: readonly Test[]): Promise<void> {
  const wanted = new RegExp(process.env.GPA_TEST_ONLY ?? "");
  for (const [name, body] of tests.filter(([one]) => wanted.test(one))) {
    const began = Date.now();
    let error: string | null = null;
    try {
      await withLimit(name, body());
    } catch (thrown) {
      error = thrown instanceof Error ? `${thrown.message}\n${thrown.stack ?? ""}` : String(thrown);
      await screenshot(`failed-${name.replaceAll(/\W+/g, "-")}`);
      await vscode.commands.executeCommand("workbench.action.closeQuickOpen"); // a list that is still open would take the keys of the next test
    }
    await report({ name, error, milliseconds: Date.now() - began });
  }
}

function withLimit(name: string, body: Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout;
  const limit = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${name}: nothing after ${LIMIT_MS / 1000} s`)), LIMIT_MS);
  });
  return Promise.race([body, limit]).finally(() => clearTimeout(timer));
}

/** The first value that is accepted. What is asked for may come late, but has to come. */
export async function until<T>(what: string, look: () => T | PromiseLike<T>, accept: (value: T) => boolean = Boolean, limitMs = LIMIT_MS / 2): Promise<T> {
  const end = Date.now() + limitMs;
  let value = await look();
  while (!accept(value)) {
    if (Date.now() > end) {
      throw new Error(`${what}: still ${JSON.stringify(value)?.slice(0, 1500)}`);
    }
    await pause(100);
    value = await look();
  }
  return value;
}

export const pause = (milliseconds: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, milliseconds));
