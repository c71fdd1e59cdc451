/** onClock is a time as the clocks of a time zone show it. */
export function onClock(at: string, timeZone: string): string {
  const options: Intl.DateTimeFormatOptions = {
    weekday: "short",
    day: "numeric",
    month: "short",
    hour: "2-digit",
    minute: "2-digit",
  };
  try {
    return new Intl.DateTimeFormat("en-GB", { ...options, timeZone }).format(new Date(at));
  } catch {
    return `${new Intl.DateTimeFormat("en-GB", { ...options, timeZone: "UTC" }).format(new Date(at))} UTC`;
  }
}

/** zones are all that the browser knows, with UTC among them. */
export function zones(): string[] {
  return ["UTC", ...Intl.supportedValuesOf("timeZone").filter((zone) => zone !== "UTC")];
}

/** hereZone is the browser's own. */
export function hereZone(): string {
  return new Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";
}

/** presets are schedules that most people want. */
export const presets: Record<string, string> = {
  "0 * * * *": "Every hour",
  "0 6 * * *": "Every day at 6:00",
  "0 6 * * 1-5": "Weekdays at 6:00",
  "0 6 * * 1": "Mondays at 6:00",
  "0 6 1 * *": "The first of each month at 6:00",
  "": "Other times…",
};
