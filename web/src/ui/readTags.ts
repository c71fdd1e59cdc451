// Tags as people type them.

const most = 20;

/** readTags reads typed tags, each once, and says what is wrong with them. */
export function readTags(text: string): { tags: string[]; error: string | null } {
  const tags = [...new Set(text.split(/[\s,]+/).filter(Boolean))];
  const odd = tags.find((tag) => !/^[\w.:/-]{1,64}$/.test(tag));
  if (odd !== undefined)
    return { tags, error: `“${odd.slice(0, 64)}”: a tag has up to 64 letters, digits or any of _ . : / -` };
  return { tags, error: tags.length > most ? `At most ${most} tags.` : null };
}
