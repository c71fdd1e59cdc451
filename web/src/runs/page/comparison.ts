export interface Row {
  name: string;
  before: string;
  after: string;
}

/** compared lists the values that differ between two runs. */
export function compared(before: Record<string, unknown>, after: Record<string, unknown>): Row[] {
  const text = (value: unknown) =>
    value === undefined ? "–" : typeof value === "string" ? value : JSON.stringify(value);
  return [...new Set([...Object.keys(before), ...Object.keys(after)])]
    .toSorted()
    .map((name) => ({ name, before: text(before[name]), after: text(after[name]) }))
    .filter((row) => row.before !== row.after);
}
