// What stays in the tab: the last analysis, so that signing in on the way to a workflow
// loses nothing, and the conversation with the model in each team.
import type { Analysis } from "./analysis.ts";
import type { Turn } from "./chat.ts";

const key = "millrace.analysis";

export function keep(analysis: Analysis): void {
  try {
    sessionStorage.setItem(key, JSON.stringify(analysis));
  } catch {
    // Too large to keep: it can be asked for again.
  }
}

export function recall(id: string | undefined): Analysis | null {
  const text = sessionStorage.getItem(key);
  if (!text || !id) return null;
  const analysis = JSON.parse(text) as Analysis;
  return analysis.analysisId === id ? analysis : null;
}

const chatKey = (team: string | null) => `millrace.chat.${team ?? ""}`;

/** keepChat keeps the conversation that somebody has in a team. */
export function keepChat(team: string | null, turns: Turn[]): void {
  sessionStorage.setItem(chatKey(team), JSON.stringify(turns));
}

export function recallChat(team: string | null): Turn[] {
  return JSON.parse(sessionStorage.getItem(chatKey(team)) ?? "[]") as Turn[];
}
