import { type ComponentProps, cloneElement, type ReactElement, type ReactNode, useId } from "react";
import { classes } from "./classes.ts";

const control =
  "w-full rounded-lg border border-field-line bg-surface px-3 text-sm text-ink aria-invalid:border-danger disabled:opacity-60";

export function Input({ className, ...rest }: ComponentProps<"input">) {
  return <input {...rest} className={classes(control, "h-9.5", className)} />;
}

export function Textarea({ className, ...rest }: ComponentProps<"textarea">) {
  return <textarea rows={3} {...rest} className={classes(control, "py-2", className)} />;
}

export function Select({ className, children, ...rest }: ComponentProps<"select">) {
  return (
    <select {...rest} className={classes(control, "field-arrow h-9.5 appearance-none pr-8", className)}>
      {children}
    </select>
  );
}

type ChoiceProps<T extends string> = Omit<ComponentProps<"select">, "value" | "onChange" | "children"> & {
  /** What each value is called. */
  options: Record<T, string>;
  value: NoInfer<T>;
  onChange: (value: NoInfer<T>) => void;
};

/** Choice is one of some values, by their names. */
export function Choice<T extends string>({ options, onChange, ...rest }: ChoiceProps<T>) {
  return (
    <Select {...rest} onChange={(event) => onChange(event.target.value as T)}>
      {Object.entries<string>(options).map(([value, name]) => (
        <option key={value} value={value}>
          {name}
        </option>
      ))}
    </Select>
  );
}

interface FieldProps {
  label: ReactNode;
  hint?: ReactNode;
  error?: string | null | undefined;
  optional?: boolean;
  className?: string;
  children: ReactElement<{ id?: string; "aria-describedby"?: string; "aria-invalid"?: boolean }>;
}

/** Field names a control, helps with it, and says what is wrong with it. */
export function Field({ label, hint, error, optional, className, children }: FieldProps) {
  const id = useId();
  const about = hint || error ? `${id}-about` : undefined;
  return (
    <div className={classes("space-y-1", className)}>
      <label htmlFor={id} className="block text-sm font-medium">
        {label}
        {optional && <span className="ml-1.5 font-normal text-muted">optional</span>}
      </label>
      {cloneElement(children, {
        id,
        ...(about && { "aria-describedby": about }),
        ...(error && { "aria-invalid": true }),
      })}
      {about && (
        <p id={about} className={classes("text-[13px]", error ? "text-danger" : "text-muted")}>
          {error ?? hint}
        </p>
      )}
    </div>
  );
}

/** Checkbox is a native box with its words. */
export function Checkbox({
  label,
  hideLabel,
  className,
  ...rest
}: ComponentProps<"input"> & { label: string; hideLabel?: boolean }) {
  return (
    <label className={classes("flex items-center gap-2 text-sm", className)}>
      <input type="checkbox" {...rest} className="size-4 accent-(--accent)" />
      <span className={hideLabel ? "sr-only" : undefined}>{label}</span>
    </label>
  );
}
