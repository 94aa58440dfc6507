/** Connects the clangd that GPA_TEST_CLANGD names; it answers for CUDA C++. */

import { LanguageClient } from "vscode-languageclient/node";

let client: LanguageClient | undefined;

export async function activate(): Promise<void> {
  const command = process.env.GPA_TEST_CLANGD ?? "clangd";
  client = new LanguageClient("clangd", { command, args: ["--background-index=false"] }, { documentSelector: [{ scheme: "file", language: "cuda-cpp" }] });
  await client.start();
}

export const deactivate = (): Promise<void> | undefined => client?.stop();
