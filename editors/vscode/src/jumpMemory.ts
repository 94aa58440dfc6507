/** Where jumps began and where the last one landed: for the way back, and so that the way to the SASS ends at exactly the instruction that was meant. */

import type { Jump, Place } from "./protocol";

const MOST_ORIGINS = 100;

interface Landing {
  readonly uri: string;
  readonly line: number;
  readonly version: number;
  readonly sass: Place;
}

export class JumpMemory {
  #last: Landing | undefined;
  readonly #origins: Place[] = [];

  /** A jump begins here. */
  leave(origin: Place): void {
    this.#origins.push(origin);
    if (this.#origins.length > MOST_ORIGINS) {
      this.#origins.shift();
    }
  }

  /** Where the last jump that was not taken back began. The editor's own history forgets jumps between neighbouring lines. */
  goBack(): Place | undefined {
    this.#last = undefined;
    return this.#origins.pop();
  }

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
