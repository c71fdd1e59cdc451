// What a table of the items of a scatter shows, without a browser.
import type { Schemas } from "../api/client.ts";

export type Item = Schemas["Shard"];
export type Attempt = Schemas["ShardAttempt"];

/** itemText is what an item is computed of: the name of a file, or the value itself. */
export function itemText({ item, itemCut }: Pick<Item, "item" | "itemCut">): string {
  if (item === null || item === undefined) return "–";
  const text = typeof item === "string" ? item : JSON.stringify(item);
  const name = /^teams\/.*\/([^/]+)$/.exec(text)?.[1];
  if (name === undefined) return itemCut ? `${text}…` : text;
  // An output's key has its step and place before its name.
  return /^\w+\.\d{6}\.\d+-\d+-\w+\.\w+\.\d{6}\.(.+)$/.exec(name)?.[1] ?? name;
}

/** took is how long an attempt lasted; null while it goes on. */
export function took({ startedAt, finishedAt }: Pick<Attempt, "startedAt" | "finishedAt">): number | null {
  return finishedAt === null ? null : Date.parse(finishedAt) - Date.parse(startedAt);
}

/** peak is the most memory that any attempt had. */
export function peak(attempts: readonly Pick<Attempt, "peakMemBytes">[]): number | null {
  const known = attempts.flatMap(({ peakMemBytes }) => (peakMemBytes === null ? [] : [peakMemBytes]));
  return known.length === 0 ? null : Math.max(...known);
}

/** placeText says where an attempt ran and how long it waited for that; a wait of less than a second is not worth a word. */
export function placeText(
  { machine, queuedMs, job }: Pick<Attempt, "machine" | "queuedMs" | "job">,
  time: (ms: number) => string,
): string {
  const parts = [
    ...(machine ? [`on ${machine}`] : []),
    ...(job ? [`job ${job.id}`] : []),
    ...(queuedMs !== null && queuedMs >= 1000 ? [`waited ${time(queuedMs)} for a place`] : []),
  ];
  const text = parts.join(", ");
  return text.charAt(0).toUpperCase() + text.slice(1);
}
