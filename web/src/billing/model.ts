// Sums and forecasts of the billing page, without a browser.

import type { Schemas } from "../api/client.ts";
import { csv as table } from "../ui/csv.ts";
import type { Budget, UsageEvent, UsageGroup } from "./queries.ts";

type Credits = Schemas["Credits"];
type UsageDay = Schemas["UsageDay"];

export interface Runway {
  perDay: number;
  /** When the credits run out at this pace; null: not within a year, or never. */
  until: Date | null;
}

/**
 * runway says how long what is left will last at the pace of the last week.
 * It takes no new month into account, except that monthly credits come again.
 */
export function runway(credits: Credits, series: UsageDay[], now: Date): Runway {
  const week = series.slice(-7);
  const perDay = week.length === 0 ? 0 : week.reduce((sum, day) => sum + day.credits, 0) / week.length;
  if (perDay <= 0) return { perDay: 0, until: null };
  let left = credits.remaining;
  let topUps = credits.topUpCredits;
  let at = now.getTime();
  let period = Date.parse(credits.periodEnd);
  const horizon = at + 365 * dayMs;
  while (at < horizon) {
    const lasts = at + (left / perDay) * dayMs;
    if (lasts <= period) return { perDay, until: new Date(lasts) };
    // The period ends first: its monthly rest is gone, the next month's comes.
    const spent = ((period - at) / dayMs) * perDay;
    const monthly = Math.max(0, left - topUps);
    topUps -= Math.max(0, spent - monthly);
    left = topUps + credits.monthlyCredits;
    at = period;
    period = nextMonth(period);
  }
  return { perDay, until: null };
}

const dayMs = 86_400_000;

function nextMonth(time: number): number {
  const date = new Date(time);
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 1);
}

/** csv is usage as a table that a spreadsheet takes as it is. */
export function csv(events: UsageEvent[]): string {
  const head = ["time", "type", "credits", "description", "quantity", "unit", "run", "workflow", "by"];
  const lines = events.map((event) => [
    event.createdAt,
    event.type,
    String(event.credits),
    event.description,
    event.quantity === null ? "" : String(event.quantity),
    event.unit ?? "",
    event.runId ?? "",
    event.workflowId ?? "",
    event.actor?.name ?? "",
  ]);
  return table([head, ...lines]);
}

/** groupsCsv has a line for each day on which something of a group was spent. */
export function groupsCsv(series: UsageDay[], groups: UsageGroup[]): string {
  const lines = groups.flatMap((group) =>
    group.series.flatMap((spent, index) =>
      spent === 0 ? [] : [[series[index]?.date ?? "", group.by, group.key ?? "", group.name, String(spent)]],
    ),
  );
  return table([["date", "by", "key", "name", "credits"], ...lines]);
}

export type BudgetKey = Pick<Budget, "scope" | "subject" | "month">;

/** same tells whether two name the same budget. */
export function same(a: BudgetKey, b: BudgetKey): boolean {
  return a.scope === b.scope && (a.subject ?? "") === (b.subject ?? "") && (a.month ?? "") === (b.month ?? "");
}

/** outlook is how a budget stands: spent, on its way to be, or fine. */
export function outlook(budget: Budget): "spent" | "short" | "fine" {
  if (budget.remaining <= 0) return "spent";
  return budget.forecast > budget.limit ? "short" : "fine";
}

/** asSet is a budget as it was set, without what is counted. */
export function asSet({ scope, subject, month, limit, alertAt, hard }: Budget): Schemas["NewBudget"] {
  return { scope, subject, month, limit, alertAt, hard };
}

/** readAlerts reads percents; null: they are none. */
export function readAlerts(text: string): number[] | null {
  const list = text
    .split(/[\s,;]+/)
    .filter(Boolean)
    .map(Number);
  return list.length <= 10 && list.every((each) => Number.isInteger(each) && each >= 1 && each <= 100) ? list : null;
}

export function budgetName(budget: Pick<Budget, "scope" | "subject" | "name">): string {
  if (budget.scope === "team") return "The team";
  return budget.scope === "tag" ? `Tag ${budget.subject}` : (budget.name ?? budget.subject ?? "");
}

/** nice is a round number at or above the largest value, for the top of a chart. */
export function nice(value: number): number {
  if (value <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  const step = [1, 2, 2.5, 5, 10].find((each) => each * power >= value) ?? 10;
  return step * power;
}

const kinds: Partial<Record<UsageEvent["type"], string>> = {
  grant: "Grant",
  refund: "Refund",
  expiry: "Expiry",
  adjustment: "Adjustment",
};

/** entryText is what an entry of the ledger is for. Runs, storage and top-ups say so themselves. */
export function entryText({ type, description }: Pick<UsageEvent, "type" | "description">): string {
  const kind = kinds[type];
  return kind ? `${kind}: ${description}` : description.charAt(0).toUpperCase() + description.slice(1);
}
