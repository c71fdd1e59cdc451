import { useEffect, useState } from "react";
import { classes } from "./classes.ts";

/** Skeleton stands where something will be; it waits a moment, so that what comes at once does not flicker. */
export function Skeleton({ className }: { className?: string }) {
  return (
    <div
      aria-hidden
      className={classes("animate-[breathe_1.6s_ease-in-out_infinite] rounded-md bg-sunken", className)}
    />
  );
}

export function SkeletonRows({ rows = 5, label = "Loading" }: { rows?: number; label?: string }) {
  const late = useLate();
  return (
    <div role="status" aria-label={label} className="space-y-2.5">
      {late &&
        Array.from({ length: rows }, (_, row) => `row-${row}`).map((key) => <Skeleton key={key} className="h-11" />)}
    </div>
  );
}

/** useLate turns true once waiting has become noticeable. */
export function useLate(ms = 150): boolean {
  const [late, setLate] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setLate(true), ms);
    return () => clearTimeout(timer);
  }, [ms]);
  return late;
}
