/** What the user's commands print while measuring. */

import { type Disposable, window } from "vscode";
import type { Connection } from "./client";

export class MeasuringOutput implements Disposable {
  readonly #channel = window.createOutputChannel("GPU Measuring");
  readonly #listener: Disposable;
  #text = "";

  constructor(connection: Connection) {
    this.#listener = connection.onOutput(({ text, clear }) => {
      if (clear === true) {
        this.#channel.clear();
        this.#text = "";
      }
      this.#channel.append(text);
      this.#text = (this.#text + text).slice(-100_000);
    });
  }

  get text(): string {
    return this.#text;
  }

  show(): void {
    this.#channel.show(true);
  }

  dispose(): void {
    this.#listener.dispose();
    this.#channel.dispose();
  }
}
