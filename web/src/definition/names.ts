// The names that a definition may use.

export const namePattern = /^[A-Za-z_][A-Za-z0-9_]{0,62}$/;

/** freeName returns the wanted name, with a number behind it where it is taken. */
export function freeName(wanted: string, taken: (name: string) => boolean): string {
  const base =
    wanted
      .replaceAll(/[^A-Za-z0-9_]+/g, "_")
      .replace(/^(?=[0-9])/, "_")
      .slice(0, 58) || "value";
  if (!taken(base)) return base;
  for (let number = 2; ; number++) if (!taken(`${base}${number}`)) return `${base}${number}`;
}

const letters = "abcdefghijklmnopqrstuvwxyz0123456789";

/** newId returns a random name that no other browser makes at the same moment. */
export function newId(prefix: string): string {
  const bytes = crypto.getRandomValues(new Uint8Array(10));
  return `${prefix}_${[...bytes].map((byte) => letters[byte % letters.length]).join("")}`;
}
