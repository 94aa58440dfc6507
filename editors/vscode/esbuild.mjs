// Bundles the extension into dist/extension.js; with --tests the unit tests into dist/test.
import { build } from "esbuild";
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const common = { bundle: true, platform: "node", target: "node20", format: "cjs", logLevel: "warning" };

if (process.argv.includes("--tests")) {
  rmSync("dist/test", { recursive: true, force: true });
  const entryPoints = readdirSync("test").filter((name) => name.endsWith(".test.ts")).map((name) => `test/${name}`);
  await build({ ...common, entryPoints, outdir: "dist/test", sourcemap: "inline" });
} else {
  const { metafile } = await build({
    ...common, entryPoints: ["src/extension.ts"], outfile: "dist/extension.js", external: ["vscode"], minify: true, legalComments: "none", metafile: true,
  });
  writeFileSync("dist/ThirdPartyNotices.txt", gatherNotices(Object.keys(metafile.inputs)));
}

/** The licences of the libraries whose code is in the bundle. */
function gatherNotices(inputs) {
  const folders = new Set(inputs.map((path) => /^(.*node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(path)?.[1]).filter(Boolean));
  const notices = [...folders].sort().map((folder) => {
    const { name, version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
    const file = readdirSync(folder).find((one) => /^licen[cs]e/i.test(one));
    if (file === undefined) throw new Error(`${folder} has no licence text`);
    return `${name} ${version} (${license})\n\n${readFileSync(join(folder, file), "utf8").trim()}\n`;
  });
  return ["dist/extension.js holds code of these libraries. Those of the server are in bundled/server.zip, each with its licence.\n", ...notices].join(`\n${"-".repeat(80)}\n\n`);
}
