// How numbers, sizes, times and money are written, everywhere the same.

const number = new Intl.NumberFormat("en", { maximumFractionDigits: 2 });

export const count = (value: number): string => number.format(value);

/** plural is "1 run", "2 runs". */
export function plural(value: number, one: string, many = `${one}s`): string {
  return `${count(value)} ${value === 1 ? one : many}`;
}

/** credits keeps what matters: cents of small sums, none of large ones. */
export function credits(value: number): string {
  const size = Math.abs(value);
  const digits = size >= 1000 ? 0 : size >= 10 ? 1 : size >= 0.1 || size === 0 ? 2 : 4;
  return new Intl.NumberFormat("en", { maximumFractionDigits: digits }).format(value);
}

const units = ["bytes", "kB", "MB", "GB", "TB", "PB"];

/** bytes counts as the plans do: a GB is 2³⁰. */
export function bytes(value: number): string {
  let unit = 0;
  let size = value;
  while (size >= 1024 && unit < units.length - 1) {
    size /= 1024;
    unit++;
  }
  const digits = unit === 0 || size >= 100 ? 0 : size >= 10 ? 1 : 2;
  return `${new Intl.NumberFormat("en", { maximumFractionDigits: digits }).format(size)} ${unit === 0 && value === 1 ? "byte" : units[unit]}`;
}

/** duration is "40 ms", "42 s", "3 min 20 s", "2 h 5 min". */
export function duration(ms: number): string {
  if (ms > 0 && ms < 50) return `${Math.ceil(ms)} ms`;
  const seconds = Math.max(0, ms) / 1000;
  if (seconds < 10) return `${new Intl.NumberFormat("en", { maximumFractionDigits: 1 }).format(seconds)} s`;
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return parts(Math.floor(whole / 60), "min", whole % 60, "s");
  if (whole < 86_400) return parts(Math.floor(whole / 3600), "h", Math.floor((whole % 3600) / 60), "min");
  return parts(Math.floor(whole / 86_400), "d", Math.floor((whole % 86_400) / 3600), "h");
}

function parts(large: number, largeUnit: string, small: number, smallUnit: string): string {
  return small === 0 ? `${large} ${largeUnit}` : `${large} ${largeUnit} ${small} ${smallUnit}`;
}

const steps: [number, Intl.RelativeTimeFormatUnit][] = [
  [60, "second"],
  [60, "minute"],
  [24, "hour"],
  [7, "day"],
  [4.35, "week"],
  [12, "month"],
];
const relativeFormat = new Intl.RelativeTimeFormat("en", { numeric: "auto" });

/** ago is "3 minutes ago", or "in 2 days". */
export function ago(time: string | number | Date, now: number = Date.now()): string {
  let value = (new Date(time).getTime() - now) / 1000;
  if (Math.abs(value) < 5) return "just now";
  for (const [size, unit] of steps) {
    if (Math.abs(value) < size) return relativeFormat.format(Math.round(value), unit);
    value /= size;
  }
  return relativeFormat.format(Math.round(value), "year");
}

/** shortAgo is "2 h ago", where there is little room. */
export function shortAgo(time: string | number | Date, now: number = Date.now()): string {
  const minutes = Math.floor((now - new Date(time).getTime()) / 60_000);
  if (minutes < 1) return "just now";
  if (minutes < 60) return `${minutes} min ago`;
  return minutes < 48 * 60 ? `${Math.floor(minutes / 60)} h ago` : `${Math.floor(minutes / 1440)} d ago`;
}

/** exact is a moment in the reader's own time, to the second. */
export function exact(time: string | number | Date): string {
  return new Date(time).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "medium" });
}

/** day is "3 Dec 2026". */
export function day(time: string | number | Date): string {
  return new Date(time).toLocaleDateString("en-GB", { day: "numeric", month: "short", year: "numeric" });
}

/** money takes minor units. */
export function money(minor: number, currency: string): string {
  const format = new Intl.NumberFormat("en", { style: "currency", currency: currency.toUpperCase() });
  const digits = format.resolvedOptions().maximumFractionDigits ?? 2;
  return format.format(minor / 10 ** digits);
}
