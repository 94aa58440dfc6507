/** What the server says and answers beyond the Language Server Protocol; see editors/PROTOCOL.md. */

import type { CallHierarchyItem, Range } from "vscode-languageclient/node";

export type HeatKind = "suffers" | "causes";

export interface HeatMark {
  readonly line: number;
  /** On the scale people see, 0 to 1. */
  readonly ratio: number;
  /** 0 to 9. */
  readonly level: number;
  readonly kind: HeatKind;
  readonly kernel: string;
  readonly text: string;
}

export interface Heat {
  readonly uri: string;
  readonly version: number | null;
  readonly marks: readonly HeatMark[];
  /** Lines with a mark whose source may not be what was measured. */
  readonly unverified?: readonly number[];
  readonly simulated?: readonly number[];
  readonly stale: readonly number[];
}

export interface Status {
  readonly state: "idle" | "reading" | "measuring" | "recording" | "asking" | "failed";
  readonly text: string;
  readonly profiles: number;
  readonly kernels: number;
  /** What lines show. */
  readonly metric: { readonly name: string; readonly title: string };
  /** What a save waits for; empty when nothing is asked. */
  readonly question: string;
  /** What is not done here, and why; empty when there is nothing to say. */
  readonly detail: string;
}

/** What lines can show. */
export interface Metric {
  readonly name: string;
  readonly title: string;
  readonly detail: string;
  /** Which kernels lack it, a sentence without its stop; empty where none does. */
  readonly lack: string;
  readonly isShown: boolean;
  readonly isKnown: boolean;
}

export interface ShownMetric {
  readonly name: string;
  readonly title: string;
  readonly lack: string;
}

/** What came of answering a question, or of asking it again. */
export type Outcome = "nothing" | "answered" | "asked" | "open";

export interface Output {
  readonly text: string;
  readonly clear?: boolean;
}

export interface Place {
  readonly uri: string;
  readonly range: Range;
}

export interface Jump extends Place {
  readonly text: string;
  readonly ratio: number;
  readonly samples: number;
  /** The instruction itself. */
  readonly sass: Place | null;
}

export interface Link {
  readonly uri: string;
  readonly ranges: readonly Range[];
  readonly primary: Range;
  readonly kernel: string;
  readonly text: string;
}

export interface HotSpot extends Place {
  readonly ratio: number;
  readonly kernel: string;
  readonly kind: HeatKind;
  readonly text: string;
}

/** What can stand beside the instructions of the SASS. */
export interface Column {
  readonly name: string;
  readonly title: string;
  readonly detail: string;
  readonly isShown: boolean;
  /** Instructions can be sorted by it. */
  readonly isNumber: boolean;
}

export interface Instruction extends Place {
  /** What stands in the column they are sorted by. */
  readonly value: string;
  readonly name: string;
  readonly detail: string;
}

/** A line of a source, and the lines of the SASS it was compiled to. */
export interface Tie {
  readonly line: number;
  readonly colour: number;
  readonly ranges: readonly { readonly first: number; readonly last: number }[];
}

export interface Kernel {
  readonly name: string;
  readonly mangled: string;
  readonly sassUri: string;
  readonly location: Place | null;
  readonly text: string;
}

/** A measurement of a kernel. */
export interface Measurement {
  readonly mangled: string;
  readonly profile: string;
  readonly text: string;
  readonly isShown: boolean;
}

export const CHOOSE_MEASUREMENT = "gpaLsp.chooseMeasurement";
export const SHOW_PREDICTION = "gpaLsp.showPrediction";
export const SHOW_PAGE = "gpaLsp.showPage";

/** A page of HTML in a file of the server's, and the fragment of the kernel that was asked for. */
export interface Page {
  readonly uri: string;
  readonly place: string;
}

export interface ChainItem {
  readonly item: CallHierarchyItem;
  readonly text: string;
  readonly ratio: number;
}

export type Direction = "incoming" | "outgoing";

export const HEAT = "gpaLsp/heat";
export const STATUS = "gpaLsp/status";
export const OUTPUT = "gpaLsp/output";
export const ASK_FOR_TEXT = "gpaLsp/askForText";
export const SASS_SCHEME = "gpa-sass";

/** A line that a person is to type, with what stands in it at first. */
export interface TextQuestion {
  readonly text: string;
  readonly value: string;
}

/** What initializationOptions.client says this client can do. */
export interface ClientAbilities {
  readonly heat: true;
  readonly status: true;
  readonly output: true;
  readonly links: true;
  readonly callHierarchyTree: true;
  readonly pages: true;
  readonly typing: true;
  readonly questions: true;
  readonly previews: true;
  readonly trusted: boolean;
}
