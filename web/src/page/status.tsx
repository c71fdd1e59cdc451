import {
  Ban,
  CircleCheck,
  CircleDashed,
  CircleSlash,
  CircleX,
  Clock,
  LoaderCircle,
  RotateCcw,
  TriangleAlert,
} from "lucide-react";
import type { ComponentType } from "react";
import type { Schemas } from "../api/client.ts";
import type { Tone } from "../ui/Notice.tsx";
import { Pill } from "../ui/Pill.tsx";

type RunStatus = Schemas["RunStatus"];
type NodeStatus = Schemas["NodeStatus"];

interface Look {
  tone: Tone;
  word: string;
  icon: ComponentType<{ className?: string; "aria-hidden"?: boolean }>;
  /** The state's colour as a CSS value, for graphs and charts. */
  color: string;
}

/** How each state of a run and of a node looks: one icon, one word, one colour, everywhere. */
export const looks: Record<RunStatus | NodeStatus, Look> = {
  pending: { tone: "neutral", word: "Pending", icon: CircleDashed, color: "var(--muted)" },
  queued: { tone: "neutral", word: "Queued", icon: Clock, color: "var(--muted)" },
  running: { tone: "info", word: "Running", icon: LoaderCircle, color: "var(--info)" },
  retrying: { tone: "warn", word: "Retrying", icon: RotateCcw, color: "var(--warn)" },
  completed: { tone: "ok", word: "Completed", icon: CircleCheck, color: "var(--ok)" },
  succeeded: { tone: "ok", word: "Completed", icon: CircleCheck, color: "var(--ok)" },
  failed: { tone: "danger", word: "Failed", icon: CircleX, color: "var(--danger)" },
  interrupted: { tone: "warn", word: "Interrupted", icon: TriangleAlert, color: "var(--warn)" },
  cancelled: { tone: "neutral", word: "Cancelled", icon: Ban, color: "var(--muted)" },
  skipped: { tone: "neutral", word: "Skipped", icon: CircleSlash, color: "var(--muted)" },
};

/** active tells whether a run still goes on. */
export function active(status: RunStatus): boolean {
  return status === "queued" || status === "running";
}

export function StatusPill({ status, suffix }: { status: RunStatus | NodeStatus; suffix?: string }) {
  const { tone, word, icon: Icon } = looks[status];
  const turning = status === "running" ? "animate-[spin_2s_linear_infinite]" : "";
  return (
    <Pill tone={tone} icon={<Icon className={turning} aria-hidden />}>
      {word}
      {suffix && <span className="tabular">{suffix}</span>}
    </Pill>
  );
}
