// The last analysis stays in the tab, so that signing in on the way to a
// workflow loses nothing.
import type { Analysis } from "./analysis.ts";

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
