import { CircleAlert, CircleCheck, Info, X } from "lucide-react";
import { useSyncExternalStore } from "react";
import { Button, IconButton } from "./Button.tsx";
import { classes } from "./classes.ts";
import { dismiss, toasts } from "./toast.ts";

const icons = { ok: CircleCheck, danger: CircleAlert, info: Info };
const inks = { ok: "text-ok", danger: "text-danger", info: "text-info" };

/** Toasts is where short messages appear; it reads them out politely. */
export function Toasts() {
  const list = useSyncExternalStore(toasts.subscribe, toasts.now);
  return (
    <div
      aria-live="polite"
      className="pointer-events-none fixed inset-x-3 bottom-3 z-60 flex flex-col items-center gap-2 sm:left-auto sm:items-end"
    >
      {list.map(({ id, tone, text, description, action }) => {
        const Icon = icons[tone];
        return (
          <div
            key={id}
            className="pointer-events-auto flex w-full max-w-sm animate-[appear_180ms] items-start gap-2.5 rounded-lg border bg-raised py-2.5 pr-1.5 pl-3.5 text-sm shadow-lift"
          >
            <Icon className={classes("mt-1.5 size-4.5 shrink-0", inks[tone])} aria-hidden />
            <div className="min-w-0 flex-1 py-1.5">
              <p className="break-words">{text}</p>
              {description && <p className="mt-0.5 text-[13px] break-all text-muted">{description}</p>}
            </div>
            {action && (
              <Button
                size="sm"
                onClick={() => {
                  dismiss(id);
                  action.run();
                }}
              >
                {action.label}
              </Button>
            )}
            <IconButton
              size="sm"
              label="Dismiss"
              icon={<X className="size-4" aria-hidden />}
              onClick={() => dismiss(id)}
            />
          </div>
        );
      })}
    </div>
  );
}
