import { Tabs as Radix } from "radix-ui";
import { type ReactNode, useEffect, useRef } from "react";

interface TabsProps<T extends string> {
  value: T;
  onChange: (value: T) => void;
  label: string;
  tabs: { value: T; label: ReactNode }[];
  children: ReactNode;
  className?: string;
}

/** Tabs show one of several panels; which one belongs into the address. */
export function Tabs<T extends string>({ value, onChange, label, tabs, children, className }: TabsProps<T>) {
  const list = useRef<HTMLDivElement>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: where not all tabs fit, the one that is chosen comes into view
  useEffect(() => {
    const tab = list.current?.querySelector<HTMLElement>('[data-state="active"]');
    if (list.current && tab)
      list.current.scrollLeft = tab.offsetLeft - (list.current.clientWidth - tab.offsetWidth) / 2;
  }, [value]);
  return (
    <Radix.Root value={value} onValueChange={(next) => onChange(next as T)} {...(className && { className })}>
      <Radix.List ref={list} aria-label={label} className="relative flex gap-1 overflow-x-auto border-b">
        {tabs.map((tab) => (
          <Radix.Trigger
            key={tab.value}
            value={tab.value}
            className="-mb-px -outline-offset-2 inline-flex h-10 items-center gap-1.5 border-b-2 border-transparent px-3 text-sm font-medium whitespace-nowrap text-muted hover:text-ink data-[state=active]:border-accent data-[state=active]:text-ink"
          >
            {tab.label}
          </Radix.Trigger>
        ))}
      </Radix.List>
      {children}
    </Radix.Root>
  );
}

export function TabPanel({ value, children, className }: { value: string; children: ReactNode; className?: string }) {
  return (
    <Radix.Content value={value} {...(className && { className })}>
      {children}
    </Radix.Content>
  );
}
