/** The way to the page: what only a person at the screen can do. drive.mjs answers. */

import { request } from "node:http";

export interface Box {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

function ask<T>(question: object): Promise<T> {
  return new Promise((resolve, reject) => {
    const sent = request({ host: "127.0.0.1", port: Number(process.env.GPA_TEST_DESK), method: "POST" }, (response) => {
      let body = "";
      response.on("data", (chunk) => (body += chunk));
      response.on("end", () => {
        const { result, error } = JSON.parse(body) as { result: T; error?: string };
        error === undefined ? resolve(result) : reject(new Error(error));
      });
    });
    sent.on("error", reject);
    sent.end(JSON.stringify(question));
  });
}

export const report = (result: object) => ask<null>({ action: "result", ...result });
export const screenshot = (name: string, clip?: Box) => ask<string>({ action: "screenshot", name, clip });
export const press = (key: string) => ask<null>({ action: "press", key });
export const type = (text: string) => ask<null>({ action: "type", text });
export const click = (selector: string, text?: string) => ask<null>({ action: "click", selector, text });
export const doubleClick = (selector: string, text?: string) => ask<null>({ action: "doubleClick", selector, text });
export const hover = (selector: string, text?: string) => ask<null>({ action: "hover", selector, text });
export const texts = (selector: string) => ask<readonly string[]>({ action: "texts", selector });
export const count = (selector: string, text?: string) => ask<number>({ action: "count", selector, text });
export const waitFor = (selector: string, text?: string, state: "visible" | "hidden" = "visible") => ask<null>({ action: "waitFor", selector, text, state });
/** What is typed goes to the list that opened, and to nothing behind it. */
export const waitForPicker = () => waitFor(".quick-input-widget input:focus");
export const attributes = (selector: string, name: string) => ask<readonly string[]>({ action: "attributes", selector, name });
/** In the page of an extension that is shown. */
export const clickInPage = (selector: string, text?: string) => ask<null>({ action: "click", selector, text, webview: true });
export const textsInPage = (selector: string) => ask<readonly string[]>({ action: "texts", selector, webview: true });
export const styles = (selector: string, property: string) => ask<readonly string[]>({ action: "styles", selector, property });
