// What people call a run: a name, a note and tags.

export interface Label {
  name: string;
  note: string;
  /** As they are typed, with spaces between them. */
  tags: string;
}

export const noLabel: Label = { name: "", note: "", tags: "" };

const most = 20;

/** readTags reads typed tags, each once, and says what is wrong with them. */
export function readTags(text: string): { tags: string[]; error: string | null } {
  const tags = [...new Set(text.split(/[\s,]+/).filter(Boolean))];
  const odd = tags.find((tag) => !/^[\w.:/-]{1,64}$/.test(tag));
  if (odd !== undefined)
    return { tags, error: `“${odd.slice(0, 64)}”: a tag has up to 64 letters, digits or any of _ . : / -` };
  return { tags, error: tags.length > most ? `At most ${most} tags.` : null };
}

/** startLabel is a label as a run is started with it; what is empty is left out. */
export function startLabel(label: Label): { name?: string; note?: string; tags?: string[] } {
  const { tags } = readTags(label.tags);
  return {
    ...(label.name.trim() && { name: label.name.trim() }),
    ...(label.note && { note: label.note }),
    ...(tags.length > 0 && { tags }),
  };
}

/** runTitle is how a run is called: "align #12", or "Stricter trimming (align #12)". */
export function runTitle(run: { workflowName: string; number: number; name: string | null }): string {
  const numbered = `${run.workflowName} #${run.number}`;
  return run.name ? `${run.name} (${numbered})` : numbered;
}
