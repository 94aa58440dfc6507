/** Where the last jump landed, so that the way to the SASS ends at exactly the instruction that was meant. */

import type { Jump, Place } from "./protocol";

interface Landing {
  readonly uri: string;
  readonly line: number;
  readonly version: number;
  readonly sass: Place;
}

export class JumpMemory {
  #last: Landing | undefined;

  /** Remember a jump; `uri` and `version` are those of the document it landed in, as the editor writes them. */
  remember(jump: Jump, uri: string, version: number): void {
    this.#last = jump.sass === null ? undefined : { uri, line: jump.range.start.line, version, sass: jump.sass };
  }

  /** The instruction meant, as long as the cursor stands on the line of the jump and the text is the same. */
  recall(uri: string, line: number, version: number): Place | undefined {
    const last = this.#last;
    return last !== undefined && last.uri === uri && last.line === line && last.version === version ? last.sass : undefined;
  }
}
