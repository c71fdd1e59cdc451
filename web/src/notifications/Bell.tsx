import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { Bell as Icon } from "lucide-react";
import { buttonClass } from "../ui/Button.tsx";
import { classes } from "../ui/classes.ts";
import { count } from "../ui/format.ts";
import { unreadQuery } from "./queries.ts";

/** Bell says how much is unread, and leads there. */
export function Bell() {
  const unread = useQuery(unreadQuery).data ?? 0;
  const label = unread > 0 ? `Notifications: ${count(unread)} unread` : "Notifications";
  return (
    <Link
      to="/notifications"
      aria-label={label}
      title={label}
      className={classes(buttonClass("quiet", "sm"), "relative w-8 shrink-0 px-0!")}
    >
      <Icon className="size-4" aria-hidden />
      {unread > 0 && (
        <span className="absolute -top-0.5 -right-0.5 min-w-4 rounded-full bg-danger px-1 text-center text-[10px] leading-4 text-surface">
          {unread > 99 ? "99+" : unread}
        </span>
      )}
    </Link>
  );
}
