// Bundles the extension into dist/extension.js; with --tests the unit tests into dist/test.
import { build } from "esbuild";
import { readdirSync, rmSync } from "node:fs";

const common = { bundle: true, platform: "node", target: "node20", format: "cjs", logLevel: "warning" };

if (process.argv.includes("--tests")) {
  rmSync("dist/test", { recursive: true, force: true });
  const entryPoints = readdirSync("test").filter((name) => name.endsWith(".test.ts")).map((name) => `test/${name}`);
  await build({ ...common, entryPoints, outdir: "dist/test", sourcemap: "inline" });
} else {
  await build({ ...common, entryPoints: ["src/extension.ts"], outfile: "dist/extension.js", external: ["vscode"], minify: true, legalComments: "none" });
}
