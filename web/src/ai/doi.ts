/** readDoi takes a DOI as people paste it: bare, with `doi:`, or as an address. Null when there is none. */
export function readDoi(text: string): string | null {
  let value = text.trim();
  try {
    value = decodeURIComponent(value);
  } catch {
    // A stray percent sign is part of the text.
  }
  const found = /10\.\d{4,9}\/[^\s"<>]+/.exec(value)?.[0];
  return found ? found.replace(/[.,;:)\]}]+$/, "") : null;
}
