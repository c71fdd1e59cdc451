// Texts for the table of a scatter's items.
import type { Schemas } from "../../api/client.ts";
import { looks } from "../../page/status.tsx";
import { count, plural } from "../../ui/format.ts";

type RunNode = Schemas["RunNode"];
export type Item = Schemas["Shard"];
export type Attempt = Schemas["ShardAttempt"];

/** itemText is the value of an item, or the name of its file. */
export function itemText({ item, itemCut }: Pick<Item, "item" | "itemCut">): string {
  if (item === null || item === undefined) return "–";
  const text = typeof item === "string" ? item : JSON.stringify(item);
  const name = /^teams\/.*\/([^/]+)$/.exec(text)?.[1];
  if (name === undefined) return itemCut ? `${text}…` : text;
  // The key of an output begins with its step and index.
  return /^\w+\.\d{6}\.\d+-\d+-\w+\.\w+\.\d{6}\.(.+)$/.exec(name)?.[1] ?? name;
}

/** failedText says how many items of a scatter failed; null if none did. */
export function failedText(shards: { total: number; failed: number } | null): string | null {
  if (!shards || shards.failed === 0) return null;
  return `${count(shards.failed)} of ${plural(shards.total, "item")} failed`;
}

/** nodeText is the state of a step in words; of a scatter, with its items. */
export function nodeText({ status, shards }: Pick<RunNode, "status" | "shards">): string {
  const { word } = looks[status];
  if (!shards) return word;
  const failed = failedText(shards);
  if (status === "failed" && failed) return failed;
  return `${word} ${shards.done} of ${shards.total}${failed ? `, ${shards.failed} failed` : ""}`;
}

const attemptWords: Record<Attempt["status"], string> = {
  started: "running",
  succeeded: "completed",
  failed: "failed",
  lost: "lost with its machine",
  cancelled: "cancelled",
};

/** attemptText says how an attempt ended. */
export function attemptText({ attempt, status, exitCode }: Pick<Attempt, "attempt" | "status" | "exitCode">): string {
  return `Attempt ${attempt}: ${attemptWords[status]}${exitCode === null ? "" : `, exit status ${exitCode}`}`;
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

/** placeText says where an attempt ran and how long it waited for that; waits below one second are left out. */
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
