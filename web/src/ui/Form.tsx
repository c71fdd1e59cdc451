import type { ReactNode } from "react";

/** Form does something when it is sent, in place of loading a page. */
export function Form({
  onSubmit,
  className = "space-y-4",
  children,
}: {
  onSubmit: () => void;
  className?: string;
  children: ReactNode;
}) {
  return (
    <form
      className={className}
      onSubmit={(event) => {
        event.preventDefault();
        onSubmit();
      }}
    >
      {children}
    </form>
  );
}
