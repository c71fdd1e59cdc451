import { RefreshCw } from "lucide-react";
import type { ReactNode } from "react";
import { ApiFailure, sentence } from "../api/failure.ts";
import { Button } from "../ui/Button.tsx";
import { Copy } from "../ui/Copy.tsx";
import { Notice } from "../ui/Notice.tsx";

interface ProblemProps {
  error: unknown;
  /** What could not be done, such as "Couldn't import". */
  title?: string;
  retry?: () => void;
  children?: ReactNode;
}

/** Problem shows a failure where the content would be: what, why, what next, and the id to quote. */
export function Problem({ error, title, retry, children }: ProblemProps) {
  const failure = error instanceof ApiFailure ? error : null;
  return (
    <Notice
      tone="danger"
      title={title ?? titles[failure?.status ?? -1] ?? "Something went wrong"}
      actions={
        (retry || children) && (
          <>
            {retry && (
              <Button size="sm" icon={<RefreshCw className="size-4" aria-hidden />} onClick={retry}>
                Try again
              </Button>
            )}
            {children}
          </>
        )
      }
    >
      <p>{sentence(error)}</p>
      {failure && <Details list={failure.details} />}
      {failure?.requestId && <RequestId id={failure.requestId} />}
    </Notice>
  );
}

const most = 5;

/**
 * Details is what is wrong, each fault once, with where it was found first. The messages of
 * a definition begin with the name of their step.
 */
function Details({ list }: { list: ApiFailure["details"] }) {
  const faults = new Map<string, { message: string; path?: string; found: number }>();
  for (const { path, message, code } of list) {
    const fault = code ? message.replace(/^"[^"]*": /, "") : message;
    const { found, ...first } = faults.get(fault) ?? { message, path: code ? "" : path, found: 0 };
    faults.set(fault, { ...first, found: found + 1 });
  }
  return (
    <>
      {[...faults.values()].slice(0, most).map(({ message, path, found }) => (
        <p key={message} className="mt-1">
          {path && <code>{path}</code>} {message}
          {found > 1 && <span className="text-muted"> (and in {found - 1} other places)</span>}
        </p>
      ))}
      {faults.size > most && <p className="mt-1 text-muted">And {faults.size - most} more.</p>}
    </>
  );
}

const titles: Record<number, string> = {
  0: "No connection",
  401: "You're signed out",
  402: "Not included in your plan",
  403: "Not allowed",
  404: "Not found",
  409: "Conflicts with the current state",
  413: "Too large",
  415: "File type not accepted",
  429: "Too many requests",
  503: "Temporarily unavailable",
};

function RequestId({ id }: { id: string }) {
  return (
    <p className="mt-1 flex items-center gap-1 text-[13px] text-muted">
      Request <code className="truncate">{id}</code> <Copy text={id} label="Copy request ID" />
    </p>
  );
}
