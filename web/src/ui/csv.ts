// Tables that a spreadsheet takes as they are.

/** csv is lines of cells. */
export function csv(lines: string[][]): string {
  return lines.map((line) => line.map(cell).join(",")).join("\r\n");
}

/** A cell that a spreadsheet would take for a formula gets a quote before it. */
function cell(value: string): string {
  const safe = /^[=+@\t\r]|^-(?![\d.])/.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
