import { queryOptions, useQuery } from "@tanstack/react-query";
import { Info, TriangleAlert, X } from "lucide-react";
import { useEffect, useState } from "react";
import { ask } from "../api/client.ts";
import { apiOf } from "../api/team.ts";
import { IconButton } from "../ui/Button.tsx";
import { classes } from "../ui/classes.ts";

export const shownNoticeQuery = queryOptions({
  queryKey: ["notice"],
  queryFn: ({ client }) => ask(apiOf(client).GET("/api/notice")),
  refetchInterval: 15_000,
});

// The pages that the server draws keep the same under the same name.
const key = "millrace.notice";

const longestTimer = 2 ** 31 - 1;

/** useOver tells whether a time has passed, also when it passes while the page is open. */
function useOver(until: string | null): boolean {
  const at = until === null ? Number.POSITIVE_INFINITY : Date.parse(until);
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    if (!Number.isFinite(at)) return;
    const timer = setTimeout(() => setNow(Date.now()), Math.min(Math.max(at - Date.now(), 0), longestTimer));
    return () => clearTimeout(timer);
  }, [at]);
  return now >= at;
}

/** NoticeBar is what the operators tell everybody. */
export function NoticeBar() {
  const { data: notice } = useQuery(shownNoticeQuery);
  const over = useOver(notice?.until ?? null);
  const [dismissed, setDismissed] = useState(() => localStorage.getItem(key));
  const warning = notice?.level === "warning";
  const Icon = warning ? TriangleAlert : Info;
  const shown = notice?.text && !over && (warning || notice.id !== dismissed);
  const dismiss = (id: string) => {
    localStorage.setItem(key, id);
    setDismissed(id);
  };
  return (
    <div role="status" aria-live="polite" className="print:hidden">
      {shown && (
        <div
          className={classes(
            "flex items-start gap-2.5 border-b px-4 py-1.5 text-sm",
            warning ? "bg-warn-soft" : "bg-info-soft",
          )}
        >
          <Icon className={classes("mt-0.5 size-4 shrink-0", warning ? "text-warn" : "text-info")} aria-hidden />
          <p className="min-w-0 flex-1 wrap-anywhere">
            <span className="sr-only">Notice from the operator: </span>
            <bdi>{notice.text}</bdi>
          </p>
          {!warning && notice.id && (
            <IconButton
              size="sm"
              label="Dismiss notice"
              className="-my-1"
              icon={<X className="size-4" aria-hidden />}
              onClick={() => dismiss(notice.id ?? "")}
            />
          )}
        </div>
      )}
    </div>
  );
}
