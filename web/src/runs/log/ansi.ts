// Log lines in terminal colors. Other escapes are removed, and a
// progress bar that overwrites itself is shown in its last state.

export interface Span {
  text: string;
  className: string;
}

interface Style {
  color: number | null;
  bold: boolean;
  dim: boolean;
  italic: boolean;
  underline: boolean;
}

// Terminal colors map to colors of the theme, which are readable in light and dark.
const colors = [
  "text-muted",
  "text-danger",
  "text-ok",
  "text-warn",
  "text-info",
  "text-[#8a3ea8] dark:text-[#d7a0ee]",
  "text-accent",
  "",
];

// biome-ignore lint/suspicious/noControlCharactersInRegex: that is what an escape is
const escapes = /\x1b(?:\[([0-9;:?]*)[ -/]*([@-~])|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\^_]|[()][A-Z0-9])/g;
// biome-ignore lint/suspicious/noControlCharactersInRegex: they have no meaning in a log
const controls = /[\x00-\x08\x0b-\x1a\x1c-\x1f\x7f]/g;

/** afterCarriageReturns is the text that a terminal shows for a line with carriage returns. */
export function afterCarriageReturns(line: string): string {
  if (!line.includes("\r")) return line;
  const parts = line.replace(/\r+$/, "").split("\r");
  return parts.at(-1) ?? "";
}

/** plain is a line without escapes, for searching and copying. */
export function plain(line: string): string {
  const text = afterCarriageReturns(line);
  return text.includes("\x1b") ? text.replaceAll(escapes, "") : text;
}

/** spans splits a line into pieces of one style. */
export function spans(line: string): Span[] {
  const text = afterCarriageReturns(line);
  if (!text.includes("\x1b")) return [{ text: text.replaceAll(controls, ""), className: "" }];
  const out: Span[] = [];
  let style: Style = { color: null, bold: false, dim: false, italic: false, underline: false };
  let at = 0;
  const add = (piece: string) => {
    if (piece) out.push({ text: piece.replaceAll(controls, ""), className: classOf(style) });
  };
  for (const match of text.matchAll(escapes)) {
    add(text.slice(at, match.index));
    at = match.index + match[0].length;
    if (match[2] === "m") style = styled(style, match[1] ?? "");
  }
  add(text.slice(at));
  return out;
}

const none: Style = { color: null, bold: false, dim: false, italic: false, underline: false };

function styled(style: Style, codes: string): Style {
  let next = { ...style };
  const list = codes.split(/[;:]/).map(Number);
  for (let at = 0; at < list.length; at++) {
    const code = list[at] ?? 0;
    if (code === 0) next = { ...none };
    else if (code === 1) next.bold = true;
    else if (code === 2) next.dim = true;
    else if (code === 3) next.italic = true;
    else if (code === 4) next.underline = true;
    else if (code === 22) next = { ...next, bold: false, dim: false };
    else if (code === 23) next.italic = false;
    else if (code === 24) next.underline = false;
    else if (code >= 30 && code <= 37) next.color = code - 30;
    else if (code >= 90 && code <= 97) next.color = code - 90;
    else if (code === 39) next.color = null;
    else if (code === 38 || code === 48) {
      // Only the first 16 of the 256 colors map to the theme.
      const kind = list[at + 1];
      const color = list[at + 2] ?? 0;
      if (code === 38) next.color = kind === 5 && color < 16 ? color % 8 : null;
      at += kind === 5 ? 2 : kind === 2 ? 4 : 0;
    }
  }
  return next;
}

function classOf({ color, bold, dim, italic, underline }: Style): string {
  return [
    color === null ? "" : colors[color],
    bold && "font-bold",
    dim && "text-muted",
    italic && "italic",
    underline && "underline",
  ]
    .filter(Boolean)
    .join(" ");
}
