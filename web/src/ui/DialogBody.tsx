import { X } from "lucide-react";
import { Dialog as Radix } from "radix-ui";
import type { ReactNode } from "react";
import { IconButton } from "./Button.tsx";
import { classes } from "./classes.ts";

export interface DialogProps {
  open: boolean;
  onOpenChange: (open: boolean) => void;
  title: ReactNode;
  description?: ReactNode;
  children: ReactNode;
  footer?: ReactNode;
  wide?: boolean;
}

/** DialogBody is what Dialog shows once it is open. */
export default function DialogBody({ open, onOpenChange, title, description, children, footer, wide }: DialogProps) {
  return (
    <Radix.Root open={open} onOpenChange={onOpenChange}>
      <Radix.Portal>
        <Radix.Overlay className="fixed inset-0 z-40 animate-[fade_150ms] bg-[rgb(8_14_18/45%)]" />
        <Radix.Content
          {...(description ? {} : { "aria-describedby": undefined })}
          // The dialog itself, not its close button, has the focus first.
          onOpenAutoFocus={(event) => {
            event.preventDefault();
            if (event.currentTarget instanceof HTMLElement) event.currentTarget.focus();
          }}
          className={classes(
            "fixed left-1/2 z-50 flex max-h-[min(88dvh,56rem)] w-[calc(100vw-1.5rem)] -translate-x-1/2 animate-[fade_150ms] flex-col rounded-xl border outline-none bg-surface shadow-lift",
            "top-3 sm:top-[7vh]",
            wide ? "max-w-4xl" : "max-w-lg",
          )}
        >
          <header className="flex items-start gap-3 px-5 pt-4 pb-2">
            <div className="min-w-0 flex-1">
              <Radix.Title className="text-[1.0625rem] font-semibold">{title}</Radix.Title>
              {description && (
                <Radix.Description className="mt-0.5 text-sm text-muted">{description}</Radix.Description>
              )}
            </div>
            <Radix.Close asChild>
              <IconButton label="Close" size="sm" icon={<X className="size-4" aria-hidden />} className="-mr-1.5" />
            </Radix.Close>
          </header>
          <div className="min-h-0 flex-1 overflow-y-auto px-5 pt-1 pb-4">{children}</div>
          {footer && (
            <footer className="flex flex-wrap items-center justify-end gap-2 border-t px-5 py-3">{footer}</footer>
          )}
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  );
}
