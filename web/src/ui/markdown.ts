// A small reading of Markdown into blocks: what answers of a model use. Text
// stays text; nothing of it ever becomes HTML.

export type Inline =
  | { kind: "text" | "strong" | "em" | "code"; text: string }
  | { kind: "link"; text: string; href: string };

export type Block =
  | { kind: "paragraph" | "quote"; content: Inline[] }
  | { kind: "heading"; level: number; content: Inline[] }
  | { kind: "code"; language: string; text: string }
  | { kind: "list"; ordered: boolean; start: number; items: Inline[][] }
  | { kind: "table"; head: Inline[][]; rows: Inline[][][] }
  | { kind: "rule" };

export function blocks(source: string): Block[] {
  const lines = source.replaceAll("\r\n", "\n").split("\n");
  const out: Block[] = [];
  let at = 0;
  while (at < lines.length) {
    const line = lines[at] ?? "";
    if (line.trim() === "") {
      at++;
      continue;
    }
    const [block, next] =
      code(lines, at) ??
      heading(lines, at) ??
      list(lines, at) ??
      table(lines, at) ??
      quote(lines, at) ??
      paragraph(lines, at);
    out.push(block);
    at = next;
  }
  return out;
}

type Found = [Block, number] | null;

const fence = /^\s*(`{3,}|~{3,})\s*([\w+-]*)/;
const bullet = /^\s*(?:[-*+]|(\d+)[.)])\s+(.*)$/;
const title = /^(#{1,6})\s+(.*)$/;

function code(lines: string[], at: number): Found {
  const open = fence.exec(lines[at] ?? "");
  if (!open) return null;
  const text: string[] = [];
  let end = at + 1;
  // While a block is still being written, it has no end.
  while (end < lines.length && !(lines[end] ?? "").trim().startsWith(open[1] ?? "```")) text.push(lines[end++] ?? "");
  return [{ kind: "code", language: open[2] ?? "", text: text.join("\n") }, end + 1];
}

function heading(lines: string[], at: number): Found {
  const line = lines[at] ?? "";
  if (/^\s*([-*_])(\s*\1){2,}\s*$/.test(line)) return [{ kind: "rule" }, at + 1];
  const found = title.exec(line);
  return found && [{ kind: "heading", level: found[1]?.length ?? 1, content: inline(found[2] ?? "") }, at + 1];
}

function list(lines: string[], at: number): Found {
  const first = bullet.exec(lines[at] ?? "");
  if (!first) return null;
  const items: string[] = [];
  let end = at;
  while (end < lines.length) {
    const line = lines[end] ?? "";
    const item = bullet.exec(line);
    if (item) items.push(item[2] ?? "");
    else if (/^\s{2,}\S/.test(line) && items.length > 0) items[items.length - 1] += ` ${line.trim()}`;
    else break;
    end++;
  }
  return [
    { kind: "list", ordered: first[1] !== undefined, start: Number(first[1] ?? 1), items: items.map(inline) },
    end,
  ];
}

function cells(line: string): Inline[][] {
  return line
    .trim()
    .replace(/^\||\|$/g, "")
    .split("|")
    .map((cell) => inline(cell.trim()));
}

function table(lines: string[], at: number): Found {
  if (!(lines[at] ?? "").includes("|") || !/^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$/.test(lines[at + 1] ?? ""))
    return null;
  let end = at + 2;
  const rows: Inline[][][] = [];
  while (end < lines.length && (lines[end] ?? "").includes("|")) rows.push(cells(lines[end++] ?? ""));
  return [{ kind: "table", head: cells(lines[at] ?? ""), rows }, end];
}

function quote(lines: string[], at: number): Found {
  let end = at;
  const text: string[] = [];
  while (end < lines.length && /^\s*>/.test(lines[end] ?? "")) text.push((lines[end++] ?? "").replace(/^\s*>\s?/, ""));
  return end === at ? null : [{ kind: "quote", content: inline(text.join(" ")) }, end];
}

function paragraph(lines: string[], at: number): [Block, number] {
  const text = [lines[at] ?? ""];
  let end = at + 1;
  while (end < lines.length) {
    const line = lines[end] ?? "";
    if (line.trim() === "" || fence.test(line) || title.test(line) || bullet.test(line) || /^\s*>/.test(line)) break;
    text.push(line);
    end++;
  }
  return [{ kind: "paragraph", content: inline(text.join("\n")) }, end];
}

const spans =
  /(`+)([\s\S]+?)\1(?!`)|\*\*([^\s*](?:[^*]*[^\s*])?)\*\*|(?<![\w*])\*([^\s*](?:[^*]*[^\s*])?)\*(?![\w*])|\[([^\]]+)\]\((\S+?)\)|(https?:\/\/[^\s<>)\]]+[^\s<>)\].,;:!?])/g;

/** inline reads what stands within a line. A link that is no web address stays text. */
export function inline(text: string): Inline[] {
  const out: Inline[] = [];
  let last = 0;
  const plain = (end: number) => {
    if (end > last) out.push({ kind: "text", text: text.slice(last, end) });
  };
  for (const found of text.matchAll(spans)) {
    const [whole, , codeText, strong, em, words, href, bare] = found;
    if (href !== undefined && !/^https?:\/\//.test(href)) continue;
    plain(found.index);
    last = found.index + whole.length;
    if (codeText !== undefined) out.push({ kind: "code", text: codeText });
    else if (strong !== undefined) out.push({ kind: "strong", text: strong });
    else if (em !== undefined) out.push({ kind: "em", text: em });
    else if (href !== undefined) out.push({ kind: "link", text: words ?? href, href });
    else if (bare !== undefined) out.push({ kind: "link", text: bare, href: bare });
  }
  plain(text.length);
  return out;
}
