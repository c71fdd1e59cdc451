import { Check } from "lucide-react";
import { cloneElement, type HTMLAttributes, lazy, type ReactElement, type ReactNode, Suspense, useState } from "react";
import { classes } from "./classes.ts";
import { useMenuParts } from "./menuParts.ts";

// Loaded when somebody comes near a menu: nobody waits for it before.
const load = () => import("./MenuBody.tsx");
const MenuBody = lazy(load);

const opening = new Set(["Enter", " ", "ArrowDown"]);

/** Menu offers actions behind one element. */
export function Menu({
  trigger,
  children,
  align = "end",
}: {
  trigger: ReactElement<HTMLAttributes<HTMLElement>>;
  children: ReactNode;
  align?: "start" | "end";
}) {
  const [used, setUsed] = useState(false);
  const closed = cloneElement(trigger, {
    "aria-haspopup": "menu",
    "aria-expanded": false,
    onPointerEnter: () => void load(),
    onFocus: () => void load(),
    onClick: () => setUsed(true),
    onKeyDown: (event) => {
      if (!opening.has(event.key)) return;
      event.preventDefault();
      setUsed(true);
    },
  });
  if (!used) return closed;
  return (
    <Suspense fallback={closed}>
      <MenuBody trigger={trigger} align={align}>
        {children}
      </MenuBody>
    </Suspense>
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
  const Radix = useMenuParts();
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
  const Radix = useMenuParts();
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
  const Radix = useMenuParts();
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

export function MenuLine() {
  const Radix = useMenuParts();
  return <Radix.Separator className="my-1 h-px bg-line" />;
}

export function MenuLabel({ children }: { children: ReactNode }) {
  const Radix = useMenuParts();
  return <Radix.Label className="px-2.5 pt-1.5 pb-1 text-xs font-medium text-muted">{children}</Radix.Label>;
}
