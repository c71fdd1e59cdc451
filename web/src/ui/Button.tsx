import { LoaderCircle } from "lucide-react";
import type { ComponentProps, ReactNode } from "react";
import { classes } from "./classes.ts";
import { Tooltip } from "./Tooltip.tsx";

type Look = "primary" | "secondary" | "quiet" | "danger" | "danger-quiet";
type Size = "sm" | "md";

export interface ButtonProps extends Omit<ComponentProps<"button">, "disabled"> {
  look?: Look;
  size?: Size;
  icon?: ReactNode;
  busy?: boolean;
  /** Why the action cannot be taken: the button stays, refuses, and says so. */
  disabledReason?: string | null | undefined;
  disabled?: boolean;
}

const base =
  "inline-flex items-center justify-center gap-1.5 rounded-lg font-medium whitespace-nowrap select-none transition-colors " +
  "aria-disabled:opacity-55 aria-disabled:cursor-not-allowed print:hidden";

const looks: Record<Look, string> = {
  primary: "bg-accent text-accent-ink hover:not-aria-disabled:brightness-110",
  secondary: "border border-line bg-surface text-ink hover:not-aria-disabled:bg-sunken",
  quiet: "text-ink hover:not-aria-disabled:bg-sunken",
  danger: "bg-danger text-surface hover:not-aria-disabled:brightness-110",
  "danger-quiet": "text-danger hover:not-aria-disabled:bg-danger-soft",
};

const sizes: Record<Size, string> = { sm: "h-8 px-2.5 text-[13px]", md: "h-9.5 px-3.5 text-sm" };

/** buttonClass is the look of a button for what is not one: a link. */
export function buttonClass(look: Look = "secondary", size: Size = "md"): string {
  return classes(base, looks[look], sizes[size]);
}

/**
 * Button is a button. A disabled one stays focusable (aria-disabled), so that
 * its reason can be read by everybody.
 */
export function Button(props: ButtonProps) {
  const {
    look = "secondary",
    size = "md",
    icon,
    busy,
    disabled,
    disabledReason,
    className,
    children,
    onClick,
    ...rest
  } = props;
  const off = Boolean(disabled || disabledReason || busy);
  const button = (
    <button
      type="button"
      {...rest}
      className={classes(buttonClass(look, size), className)}
      aria-disabled={off || undefined}
      aria-busy={busy || undefined}
      onClick={(event) => {
        if (off) event.preventDefault();
        else onClick?.(event);
      }}
    >
      {busy ? <LoaderCircle className="size-4 animate-spin" aria-hidden /> : icon}
      {children}
    </button>
  );
  // A button that may refuse keeps its place in the tree, and with it its
  // focus, when the reason goes.
  return disabledReason === undefined ? button : <Tooltip text={disabledReason}>{button}</Tooltip>;
}

export interface IconButtonProps extends ButtonProps {
  label: string;
}

/** IconButton is a picture that says what it does when asked. */
export function IconButton({
  label,
  className,
  disabledReason,
  size = "md",
  look = "quiet",
  ...rest
}: IconButtonProps) {
  return (
    <Tooltip text={disabledReason ?? label}>
      <Button
        {...rest}
        look={look}
        size={size}
        disabled={Boolean(disabledReason) || rest.disabled === true}
        aria-label={label}
        className={classes("shrink-0 px-0!", size === "sm" ? "w-8" : "w-9.5", className)}
      />
    </Tooltip>
  );
}
