/** readable is a colour, darker where white letters on it could not be read. */
export function readable(color: string): string {
  let parts = [1, 3, 5].map((at) => Number.parseInt(color.slice(at, at + 2), 16));
  const light = () =>
    parts
      .map((part) => (part / 255 <= 0.04045 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4))
      .reduce((sum, part, at) => sum + part * ([0.2126, 0.7152, 0.0722][at] ?? 0), 0);
  while (1.05 / (light() + 0.05) < 4.6) parts = parts.map((part) => Math.floor(part * 0.95));
  return `#${parts.map((part) => part.toString(16).padStart(2, "0")).join("")}`;
}
