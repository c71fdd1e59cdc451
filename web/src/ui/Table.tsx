import type { ComponentProps, ReactNode } from "react";
import { classes } from "./classes.ts";

/** Table scrolls sideways by itself where it is too wide for its place; what is in it for screen readers alone, too. */
export function Table({
  label,
  head,
  children,
  className,
}: {
  label: string;
  head: ReactNode;
  children: ReactNode;
  className?: string;
}) {
  return (
    <section
      className={classes("relative overflow-x-auto rounded-lg border bg-surface", className)}
      aria-label={label}
      tabIndex={0}
    >
      <table className="w-full border-collapse text-sm">
        <thead className="border-b text-left text-[13px] text-muted">
          <tr>{head}</tr>
        </thead>
        <tbody className="[&>tr:not(:last-child)]:border-b">{children}</tbody>
      </table>
    </section>
  );
}

export function Th({ className, ...rest }: ComponentProps<"th">) {
  return <th scope="col" {...rest} className={classes("px-3 py-2 font-medium whitespace-nowrap", className)} />;
}

export function Td({ className, ...rest }: ComponentProps<"td">) {
  return <td {...rest} className={classes("px-3 py-2 align-middle", className)} />;
}
