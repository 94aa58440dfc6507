/** Why no server runs and what helps, as data, and as a page. Nothing here touches the editor. */

import { LEAST_VERSION, type Nothing } from "./python";

export interface Remedy {
  readonly title: string;
  readonly command: string;
  readonly argument?: unknown;
}

export interface Absence {
  /** The reason in a few words. */
  readonly brief: string;
  readonly reason: string;
  /** What the first remedy does. */
  readonly advice: string;
  /** A sentence for each interpreter that was tried. */
  readonly tried: readonly string[];
  /** The one that helps most first. */
  readonly remedies: readonly [Remedy, ...Remedy[]];
  /** Found while looking for a server, and not told by the client itself. */
  readonly isNews: boolean;
}

const SETTINGS: Remedy = { title: "Settings…", command: "workbench.action.openSettings", argument: "gpaLsp.interpreter" };
const LOG: Remedy = { title: "Show Log", command: "gpa.showOutput" };

/** Commands that the page may run. */
export const REMEDY_COMMANDS: readonly string[] = ["gpa.createEnvironment", "gpa.restart", SETTINGS.command, LOG.command];

/** Nothing was found that can run the server. */
export function tellNothing({ brief, reason, tried }: Nothing): Absence {
  return {
    brief,
    reason,
    advice: `The extension can make a Python environment of its own for it, from any Python ${LEAST_VERSION.join(".")} or later on this machine.`,
    tried,
    remedies: [{ title: "Create Environment…", command: "gpa.createEnvironment" }, { title: "Look Again", command: "gpa.restart" }, SETTINGS, LOG],
    isNews: true,
  };
}

/** A server was started and did not stay. */
export function tellCrash(reason: string): Absence {
  return {
    brief: "the server does not run",
    reason: `The server does not run. ${reason}`,
    advice: "The log says more. A damaged Python environment can be made anew.",
    tried: [],
    remedies: [{ title: "Restart Server", command: "gpa.restart" }, LOG, { title: "Create Environment…", command: "gpa.createEnvironment" }, SETTINGS],
    isNews: false,
  };
}

const STYLE = `
body { font: 1rem var(--vscode-font-family, sans-serif); padding: 1rem 2rem; max-width: 48rem; line-height: 1.5; overflow-wrap: break-word; }
h1 { font-size: 1.4rem; font-weight: 600; }
nav { display: flex; flex-wrap: wrap; gap: .6rem; margin: 1.2rem 0; }
a.button { padding: .35rem .9rem; border-radius: 2px; text-decoration: none; color: var(--vscode-button-secondaryForeground); background: var(--vscode-button-secondaryBackground); border: 1px solid var(--vscode-button-border, transparent); }
a.button:first-child { color: var(--vscode-button-foreground); background: var(--vscode-button-background); }
a.button:hover { background: var(--vscode-button-secondaryHoverBackground); }
a.button:first-child:hover { background: var(--vscode-button-hoverBackground); }
a.button:focus-visible { outline: 1px solid var(--vscode-focusBorder); outline-offset: 2px; }
`;

/** A page that says why, with a button for each remedy. */
export function drawAbsence({ reason, advice, tried, remedies }: Absence, title = "The GPU advisor has no server to run"): string {
  const buttons = remedies.map(({ title: words, command, argument }) => {
    const address = argument === undefined ? command : `${command}?${encodeURIComponent(JSON.stringify([argument]))}`;
    return `<a class="button" role="button" href="command:${escapeHtml(address)}">${escapeHtml(words)}</a>`;
  });
  const others = tried.filter((sentence) => sentence !== reason).map((sentence) => `<li>${escapeHtml(sentence)}</li>`);
  return drawPage(`<h1>${escapeHtml(title)}</h1><p role="status">${escapeHtml(reason)}</p><p>${escapeHtml(advice)}</p><nav>${buttons.join("")}</nav>
${others.length === 0 ? "" : `<p>Tried as well:</p><ul>${others.join("")}</ul>`}`);
}

/** A page of a sentence. */
export const drawSentence = (text: string): string => drawPage(`<p role="status">${escapeHtml(text)}</p>`);

function drawPage(body: string): string {
  return `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>GPU Report</title>
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<style>${STYLE}</style></head><body><main>${body}</main></body></html>`;
}

const escapeHtml = (text: string): string => text.replace(/[&<>"']/g, (letter) => `&#${letter.charCodeAt(0)};`);
