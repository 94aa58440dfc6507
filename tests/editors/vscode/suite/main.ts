/** The suite of a trusted workspace: everything a person does with a profile. Each part goes on where the one before left the editor. */

import { reading, startUp } from "./main/reading";
import { heat } from "./main/heat";
import { sass } from "./main/sass";
import { columns } from "./main/columns";
import { metrics } from "./main/metrics";
import { jumps } from "./main/jumps";
import { pages } from "./main/pages";
import { fixing } from "./main/fixing";
import { changing } from "./main/changing";
import { looks } from "./main/looks";
import { runTests } from "./runner";

export async function run(): Promise<void> {
  await runTests([...startUp, ...reading, ...heat, ...sass, ...columns, ...metrics, ...jumps, ...pages, ...fixing, ...changing, ...looks]);
}
