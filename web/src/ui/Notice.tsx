import { CircleAlert, CircleCheck, Info, TriangleAlert } from "lucide-react";
import type { ReactNode } from "react";
import { classes } from "./classes.ts";

export type Tone = "neutral" | "info" | "ok" | "warn" | "danger";

const tones: Record<Tone, string> = {
  neutral: "bg-sunken",
  info: "bg-info-soft border-info/40",
  ok: "bg-ok-soft border-ok/40",
  warn: "bg-warn-soft border-warn/40",
  danger: "bg-danger-soft border-danger/40",
};
const icons = { neutral: Info, info: Info, ok: CircleCheck, warn: TriangleAlert, danger: CircleAlert };
const inks: Record<Tone, string> = {
  neutral: "text-muted",
  info: "text-info",
  ok: "text-ok",
  warn: "text-warn",
  danger: "text-danger",
};

/** Notice tells something beside the content it concerns. */
export function Notice({
  tone = "neutral",
  title,
  children,
  actions,
  className,
}: {
  tone?: Tone;
  title?: ReactNode;
  children?: ReactNode;
  actions?: ReactNode;
  className?: string;
}) {
  const Icon = icons[tone];
  return (
    <div
      role={tone === "danger" ? "alert" : "status"}
      className={classes("flex gap-2.5 rounded-lg border px-3.5 py-3 text-sm", tones[tone], className)}
    >
      <Icon className={classes("mt-0.5 size-4.5 shrink-0", inks[tone])} aria-hidden />
      <div className="min-w-0 flex-1">
        {title && <p className="font-semibold">{title}</p>}
        {children && <div className="text-ink/90 [&:not(:first-child)]:mt-0.5">{children}</div>}
        {actions && <div className="mt-2 flex flex-wrap gap-2">{actions}</div>}
      </div>
    </div>
  );
}
