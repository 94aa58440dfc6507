/** Texts that are cut to what a place has room for. Knows nothing of the editor. */

/** At most so many characters; words and numbers go whole. */
export function shorten(text: string, most: number): string {
  if (text.length <= most) {
    return text;
  }
  const head = text.slice(0, most); // one more than is shown: whether a word ends there
  const words = head.includes(" ") ? head.slice(0, head.lastIndexOf(" ")) : head.slice(0, most - 1);
  return `${words.replace(/[\s·,;:(]*(?:[≥~±+−-]?\d[\d.,–×%]*)?[\s·,;:(]*$/, "") || words}…`;
}
