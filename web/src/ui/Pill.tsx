import type { ReactNode } from "react";
import { classes } from "./classes.ts";
import type { Tone } from "./Notice.tsx";

const tones: Record<Tone, string> = {
  neutral: "bg-sunken text-muted",
  info: "bg-info-soft text-info",
  ok: "bg-ok-soft text-ok",
  warn: "bg-warn-soft text-warn",
  danger: "bg-danger-soft text-danger",
};

/** Pill is a state: an icon and a word, never a colour alone. */
export function Pill({
  tone = "neutral",
  icon,
  children,
  className,
}: {
  tone?: Tone;
  icon?: ReactNode;
  children: ReactNode;
  className?: string;
}) {
  return (
    <span
      className={classes(
        "inline-flex items-center gap-1 rounded-full px-2 py-0.5 text-[13px] font-medium whitespace-nowrap [&>svg]:size-3.5 [&>svg]:shrink-0",
        tones[tone],
        className,
      )}
    >
      {icon}
      {children}
    </span>
  );
}
