import { type ReactNode, useEffect } from "react";

/** useTitle names the tab after what it shows. */
export function useTitle(title: string): void {
  useEffect(() => {
    document.title = `${title} · Millrace`;
  }, [title]);
}

interface PageProps {
  title: string;
  heading?: ReactNode;
  intro?: ReactNode;
  actions?: ReactNode;
  children: ReactNode;
}

/** Page is a view with a heading, its actions, and readable width. */
export function Page({ title, heading, intro, actions, children }: PageProps) {
  useTitle(title);
  return (
    <div className="mx-auto w-full max-w-6xl px-4 py-6 md:px-8 md:py-8">
      <header className="mb-6 flex flex-wrap items-start justify-between gap-x-4 gap-y-3">
        <div className="min-w-0">
          <h1>{heading ?? title}</h1>
          {intro && <p className="mt-1 max-w-2xl text-sm text-pretty text-muted">{intro}</p>}
        </div>
        {actions && <div className="flex flex-wrap items-center gap-2 max-sm:w-full max-sm:*:flex-1">{actions}</div>}
      </header>
      {children}
    </div>
  );
}

/** Section is a part of a page with a heading of its own. */
export function Section({
  title,
  intro,
  actions,
  children,
}: {
  title: string;
  intro?: ReactNode;
  actions?: ReactNode;
  children: ReactNode;
}) {
  return (
    <section className="mb-8">
      <header className="mb-3 flex flex-wrap items-end justify-between gap-x-3 gap-y-2">
        <div>
          <h2>{title}</h2>
          {intro && <p className="mt-0.5 max-w-2xl text-sm text-muted">{intro}</p>}
        </div>
        {actions && <div className="flex flex-wrap gap-2">{actions}</div>}
      </header>
      {children}
    </section>
  );
}
