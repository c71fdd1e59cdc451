import { Check } from "lucide-react";
import { DropdownMenu as Radix } from "radix-ui";
import type { ReactElement, ReactNode } from "react";
import { classes } from "./classes.ts";

/** Menu offers actions behind one element. */
export function Menu({
  trigger,
  children,
  align = "end",
}: {
  trigger: ReactElement;
  children: ReactNode;
  align?: "start" | "end";
}) {
  return (
    <Radix.Root modal={false}>
      <Radix.Trigger asChild>{trigger}</Radix.Trigger>
      <Radix.Portal>
        <Radix.Content
          align={align}
          sideOffset={6}
          collisionPadding={8}
          className="z-50 max-h-(--radix-dropdown-menu-content-available-height) min-w-48 animate-[fade_120ms] overflow-y-auto rounded-lg border bg-raised p-1 shadow-lift"
        >
          {children}
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  );
}

const row =
  "flex items-center gap-2.5 rounded-md px-2.5 py-1.5 text-sm outline-none select-none data-highlighted:bg-sunken data-disabled:text-muted";

interface ItemProps {
  icon?: ReactNode;
  children: ReactNode;
  onSelect?: () => void;
  danger?: boolean;
  /** Why it cannot be chosen; shown under its words. */
  disabledReason?: string | null | undefined;
}

export function MenuItem({ icon, children, onSelect, danger, disabledReason }: ItemProps) {
  return (
    <Radix.Item
      className={classes(row, danger && !disabledReason && "text-danger")}
      disabled={Boolean(disabledReason)}
      onSelect={() => onSelect?.()}
    >
      {icon}
      <span className="min-w-0">
        {children}
        {disabledReason && <span className="block text-xs">{disabledReason}</span>}
      </span>
    </Radix.Item>
  );
}

/** MenuLink is an item that is a link. */
export function MenuLink({ children }: { children: ReactElement }) {
  return (
    <Radix.Item asChild className={row}>
      {children}
    </Radix.Item>
  );
}

export function MenuChoice<T extends string>({
  value,
  onChange,
  options,
}: {
  value: T;
  onChange: (value: T) => void;
  options: { value: T; label: ReactNode }[];
}) {
  return (
    <Radix.RadioGroup value={value} onValueChange={(next) => onChange(next as T)}>
      {options.map((option) => (
        <Radix.RadioItem key={option.value} value={option.value} className={row}>
          <span className="size-4 shrink-0">
            <Radix.ItemIndicator>
              <Check className="size-4 text-accent" aria-hidden />
            </Radix.ItemIndicator>
          </span>
          {option.label}
        </Radix.RadioItem>
      ))}
    </Radix.RadioGroup>
  );
}

export const MenuLine = () => <Radix.Separator className="my-1 h-px bg-line" />;

export const MenuLabel = ({ children }: { children: ReactNode }) => (
  <Radix.Label className="px-2.5 pt-1.5 pb-1 text-xs font-medium text-muted">{children}</Radix.Label>
);
