import { type ErrorComponentProps, Link } from "@tanstack/react-router";
import { Problem } from "../page/Problem.tsx";
import { buttonClass } from "../ui/Button.tsx";

/** ErrorPage stands for a page that could not be shown. */
export function ErrorPage({ error, reset }: ErrorComponentProps) {
  return (
    <main id="content" className="mx-auto w-full max-w-2xl px-4 py-12">
      <h1 className="mb-4">Couldn't show this page</h1>
      <Problem
        error={error}
        retry={() => {
          reset();
          location.reload();
        }}
      >
        <Link to="/workflows" className={buttonClass("secondary", "sm")}>
          Go to workflows
        </Link>
      </Problem>
    </main>
  );
}

export function NotFoundPage() {
  return (
    <main id="content" className="mx-auto w-full max-w-2xl px-4 py-16 text-center">
      <p className="text-sm font-medium text-muted">404</p>
      <h1 className="mt-1">Page not found</h1>
      <p className="mt-2 mb-6 text-muted">It may have been deleted, or belong to another of your teams.</p>
      <Link to="/workflows" className={buttonClass("primary")}>
        Go to workflows
      </Link>
    </main>
  );
}
