/** readMap takes lines of name = /pointer; without any there is no map. */
export function readMap(text: string): { map: Record<string, string> | null; error: string | null } {
  const map: Record<string, string> = {};
  for (const line of text.split("\n")) {
    if (line.trim() === "") continue;
    const at = line.indexOf("=");
    const name = line.slice(0, at).trim();
    const pointer = line.slice(at + 1).trim();
    if (at < 1 || name === "" || !pointer.startsWith("/"))
      return { map: null, error: `Enter name = /pointer instead of ${line.trim()}` };
    map[name] = pointer;
  }
  return { map: Object.keys(map).length > 0 ? map : null, error: null };
}
