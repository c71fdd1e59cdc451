// Reading search parameters: what is malformed is left out, never an error.
type Search = Record<string, unknown>;

export function text<K extends string>(search: Search, key: K): { [key in K]?: string } {
  const value = search[key];
  if (typeof value === "string" && value !== "") return { [key]: value } as { [key in K]?: string };
  return {};
}

export function oneOf<K extends string, V extends string>(
  search: Search,
  key: K,
  values: readonly V[],
): { [key in K]?: V } {
  const value = values.find((each) => each === String(search[key]));
  return value === undefined ? {} : ({ [key]: value } as { [key in K]?: V });
}

export function flag<K extends string>(search: Search, key: K): { [key in K]?: true } {
  const value = search[key];
  return value === true || value === "1" || value === "true" ? ({ [key]: true } as { [key in K]?: true }) : {};
}

/** parseSearch and stringifySearch keep addresses plain: text as it is, a flag as 1. */
export function parseSearch(search: string): Record<string, string> {
  return Object.fromEntries(new URLSearchParams(search));
}

export function stringifySearch(search: Record<string, unknown>): string {
  const plain = new URLSearchParams();
  for (const [key, value] of Object.entries(search)) {
    if (value !== undefined && value !== null && value !== false) plain.set(key, value === true ? "1" : String(value));
  }
  const text = plain.toString();
  return text ? `?${text}` : "";
}
