import type { Schemas } from "../api/client.ts";
import { count, credits, day } from "../ui/format.ts";
import { Pill } from "../ui/Pill.tsx";
import type { Runway } from "./model.ts";

/** Balance is what is left, as a ring and in words. */
export function Balance({ balance, runway }: { balance: Schemas["Credits"]; runway: Runway | null }) {
  const left = Math.max(0, Math.min(100, 100 - balance.percentUsed));
  const tone =
    balance.remaining <= 0
      ? "var(--danger)"
      : left < 15 && balance.topUpCredits === 0
        ? "var(--warn)"
        : "var(--accent)";
  return (
    <div className="flex flex-wrap items-center gap-x-6 gap-y-4 rounded-xl border bg-surface p-5">
      <svg
        viewBox="0 0 80 80"
        className="size-28 -rotate-90"
        role="img"
        aria-label={`${Math.round(left)}% of the month's credits left`}
      >
        <circle cx={40} cy={40} r={33} fill="none" stroke="var(--line)" strokeWidth={9} />
        <circle
          cx={40}
          cy={40}
          r={33}
          fill="none"
          stroke={tone}
          strokeWidth={9}
          strokeLinecap="round"
          pathLength={100}
          strokeDasharray={`${left} 100`}
          opacity={left === 0 ? 0 : 1}
        />
      </svg>
      <div className="min-w-48 flex-1">
        <p className="text-sm text-muted">Credits left</p>
        <p className="tabular text-3xl font-semibold tracking-tight">{credits(balance.remaining)}</p>
        <p className="mt-1 text-sm text-muted">{forecast(balance, runway)}</p>
      </div>
      <dl className="grid grid-cols-[auto_auto] items-center gap-x-6 max-sm:w-full gap-y-1 text-sm">
        <dt className="text-muted">Plan</dt>
        <dd className="text-right">
          <Pill>{balance.plan}</Pill>
        </dd>
        <dt className="text-muted">Used this month</dt>
        <dd className="tabular text-right">
          {credits(balance.usedCredits)} of {count(balance.monthlyCredits)}
        </dd>
        <dt className="text-muted">Top-up credits</dt>
        <dd className="tabular text-right">{credits(balance.topUpCredits)}</dd>
        <dt className="text-muted">Held by active runs</dt>
        <dd className="tabular text-right">{credits(balance.heldCredits)}</dd>
        <dt className="text-muted">Monthly credits renew</dt>
        <dd className="text-right">{day(balance.periodEnd)}</dd>
        <dt className="text-muted">Paper analyses today</dt>
        <dd className="tabular text-right">
          {balance.aiAnalysis.used} of {balance.aiAnalysis.limit}
        </dd>
      </dl>
    </div>
  );
}

function forecast(balance: Schemas["Credits"], runway: Runway | null): string {
  if (balance.remaining <= 0) return "No credits left: add credits, or wait until the monthly credits renew.";
  if (!runway || runway.perDay === 0) return "No credits used in the last 7 days.";
  if (!runway.until) return `At last week's pace, ${credits(runway.perDay)} a day, the monthly credits are enough.`;
  return `At last week's pace, ${credits(runway.perDay)} a day, credits last until ${day(runway.until)}.`;
}
