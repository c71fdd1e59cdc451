// What people call a run: a name, a note and tags.
import { readTags } from "../../ui/readTags.ts";

export interface Label {
  name: string;
  note: string;
  /** As they are typed, with spaces between them. */
  tags: string;
}

export const noLabel: Label = { name: "", note: "", tags: "" };

/** startLabel is the label of a new run, without empty parts. */
export function startLabel(label: Label): { name?: string; note?: string; tags?: string[] } {
  const { tags } = readTags(label.tags);
  return {
    ...(label.name.trim() && { name: label.name.trim() }),
    ...(label.note && { note: label.note }),
    ...(tags.length > 0 && { tags }),
  };
}
