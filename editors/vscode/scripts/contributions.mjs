// The parts of package.json that are made from tables: settings, colours, and what an untrusted workspace may not set.
//
//   node scripts/contributions.mjs           writes them
//   node scripts/contributions.mjs --check   says whether they are as they would be written
import { readFileSync, writeFileSync } from "node:fs";

const HERE = new URL("..", import.meta.url);
const LEVELS = 10;

const HUES = {
  suffers: { words: "lines that suffer from stalls", dark: [255, 140, 60], light: [214, 92, 0] },
  causes: { words: "lines that cause stalls", dark: [110, 170, 255], light: [20, 98, 214] },
};

const read = (name) => JSON.parse(readFileSync(new URL(name, HERE), "utf8"));
const hexadecimal = (value) => Math.round(value).toString(16).padStart(2, "0");
const colour = (rgb, opacity) => `#${[...rgb, opacity * 255].map(hexadecimal).join("")}`;

/** Backgrounds get denser with the level; hints on them keep a contrast of 4.5 : 1 at the densest, where the theme gives them one. */
export function makeColours() {
  const colours = [];
  for (const [kind, { words, dark, light }] of Object.entries(HUES)) {
    for (let level = 0; level < LEVELS; level++) {
      const step = level / (LEVELS - 1);
      colours.push({
        id: `gpaLsp.heat.${kind}${level}`,
        description: `Background of ${words}, level ${level} of ${LEVELS - 1}.`,
        defaults: {
          dark: colour(dark, 0.04 + 0.078 * step), light: colour(light, 0.04 + 0.078 * step),
          highContrast: colour(dark, 0.1 + 0.3 * step), highContrastLight: colour(light, 0.1 + 0.3 * step),
        },
      });
    }
    colours.push({
      id: `gpaLsp.heat.${kind}Marker`,
      description: `Stripe beside ${words}, and their marks in the scroll bar.`,
      defaults: { dark: colour(dark, 0.9), light: colour(light, 0.9), highContrast: colour(dark, 1), highContrastLight: colour(light, 1) },
    });
  }
  colours.push(
    {
      id: "gpaLsp.heat.stale", description: "Dotted stripe beside lines that were changed since they were measured.",
      defaults: { dark: "#9a9a9a99", light: "#6a6a6a99", highContrast: "#cccccc", highContrastLight: "#444444" },
    },
    {
      id: "gpaLsp.linkedLine", description: "Lines that belong to the line of the cursor on the other side, between source and SASS.",
      defaults: { dark: "#c8c8ff1c", light: "#3a3a801a", highContrast: "#c8c8ff30", highContrastLight: "#3a3a8030" },
    },
    {
      id: "gpaLsp.linkedLineBorder", description: "Outline of the one among them that matters most.",
      defaults: { dark: "#b4b4ff99", light: "#5050a099", highContrast: "#ffffff", highContrastLight: "#000000" },
    },
    { // the editor's own, which have 2.96 : 1 and 3.15 : 1 on white; as defaults, not as customizations, they give way to the theme's and to the user's
      id: "editorInlayHint.foreground", description: "Foreground color of inline hints: the editor's, with a contrast of 4.5 : 1 on hot lines.",
      defaults: { dark: "#a3a3a3", light: "#565656", highContrast: "#ffffff", highContrastLight: "#000000" },
    },
    {
      id: "editorCodeLens.foreground", description: "Foreground color of editor CodeLens: the editor's, with a contrast of 4.5 : 1.",
      defaults: { dark: "#999999", light: "#616161", highContrast: "#999999", highContrastLight: "#292929" },
    },
  );
  return colours;
}

export function makeSettings() {
  const sections = [["Server", read("settings/client.json"), true], ["Findings", read("settings/server.json"), false]];
  const restricted = [];
  const configuration = sections.map(([title, table]) => {
    const properties = {};
    for (const [name, { restricted: isRestricted, ...definition }] of Object.entries(table)) {
      properties[name] = definition;
      if (isRestricted) restricted.push(name);
    }
    return { title, properties };
  });
  return { configuration, restricted };
}

export function makeManifest(manifest) {
  const { configuration, restricted } = makeSettings();
  return {
    ...manifest,
    contributes: { ...manifest.contributes, configuration, colors: makeColours() },
    capabilities: {
      ...manifest.capabilities,
      untrustedWorkspaces: { ...manifest.capabilities.untrustedWorkspaces, restrictedConfigurations: restricted },
    },
  };
}

const before = readFileSync(new URL("package.json", HERE), "utf8");
const after = `${JSON.stringify(makeManifest(JSON.parse(before)), null, 2)}\n`;
if (process.argv.includes("--check")) {
  if (before !== after) {
    console.error("package.json is not what settings/*.json and scripts/contributions.mjs make: run `npm run contributions`");
    process.exitCode = 1;
  }
} else if (before !== after) {
  writeFileSync(new URL("package.json", HERE), after);
}
