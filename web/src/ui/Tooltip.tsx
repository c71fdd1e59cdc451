import { Tooltip as Radix } from "radix-ui";
import type { ReactElement, ReactNode } from "react";

export const TooltipProvider = ({ children }: { children: ReactNode }) => (
  <Radix.Provider delayDuration={350}>{children}</Radix.Provider>
);

/** Tooltip says more about one element, to pointer and keyboard alike; without text it is silent. */
export function Tooltip({
  text,
  children,
  side = "top",
}: {
  text: ReactNode;
  children: ReactElement;
  side?: "top" | "right" | "bottom" | "left";
}) {
  return (
    <Radix.Root>
      <Radix.Trigger asChild>{children}</Radix.Trigger>
      {text && (
        <Radix.Portal>
          <Radix.Content
            side={side}
            sideOffset={6}
            collisionPadding={8}
            className="z-60 max-w-72 animate-[fade_120ms] rounded-md bg-ink px-2.5 py-1.5 text-[13px] leading-snug text-bg shadow-lift"
          >
            {text}
            <Radix.Arrow className="fill-ink" />
          </Radix.Content>
        </Radix.Portal>
      )}
    </Radix.Root>
  );
}
