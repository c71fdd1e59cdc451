import { classes } from "./classes.ts";
import type { Tone } from "./Notice.tsx";

const bars: Record<Tone, string> = {
  neutral: "bg-muted",
  info: "bg-info",
  ok: "bg-ok",
  warn: "bg-warn",
  danger: "bg-danger",
};

/** Progress is a bar with a name; without a value it only says that something goes on. */
export function Progress({
  value,
  label,
  tone,
  className,
}: {
  value: number | null;
  label: string;
  tone?: Tone;
  className?: string;
}) {
  const percent = value === null ? null : Math.max(0, Math.min(100, value));
  return (
    <div
      role="progressbar"
      aria-label={label}
      aria-valuemin={0}
      aria-valuemax={100}
      {...(percent !== null && { "aria-valuenow": Math.round(percent) })}
      className={classes("h-1.5 overflow-hidden rounded-full bg-line", className)}
    >
      <div
        className={classes(
          "h-full rounded-full transition-[width] duration-300",
          tone ? bars[tone] : "bg-accent",
          percent === null && "w-1/3 animate-[breathe_1.2s_infinite]",
        )}
        style={percent === null ? undefined : { width: `${percent}%` }}
      />
    </div>
  );
}
