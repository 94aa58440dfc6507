/** Paths and lists of folders: what lies in a workspace, and what depends on where a program runs. Knows nothing of the editor. */

import * as path from "node:path";

/** Lists of folders that interpreters and loaders search. */
const SEARCH_PATHS = ["PATH", "PYTHONPATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "DYLD_FALLBACK_LIBRARY_PATH"];

/** Whether a file is a folder, or lies somewhere below it. A name may begin with dots, and on Windows lie on another drive. */
export function isInside(folder: string, file: string, paths: path.PlatformPath = path): boolean {
  const way = paths.relative(folder, file);
  return way !== ".." && !way.startsWith(`..${paths.sep}`) && !paths.isAbsolute(way);
}

/** A list of folders without those that are empty or relative, which stand for the folder that a program runs in. */
export function keepAbsolute(folders: string, paths: path.PlatformPath = path): string {
  return folders.split(paths.delimiter).filter((folder) => paths.isAbsolute(folder)).join(paths.delimiter);
}

/** The environment for a program that runs in a workspace nobody trusts: none of its search paths leads there by being relative. */
export function cleanSearchPaths(environment: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const changed: NodeJS.ProcessEnv = { ...environment };
  for (const name of SEARCH_PATHS) {
    const folders = environment[name];
    if (folders !== undefined) {
      changed[name] = keepAbsolute(folders);
    }
  }
  return changed;
}
