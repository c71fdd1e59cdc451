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

/** Details is what is wrong, each message once, with where it was found first. Problems of a definition name their step. */
function Details({ list }: { list: ApiFailure["details"] }) {
  const byMessage = new Map<string, string[]>();
  for (const { path, message, code } of list) {
    byMessage.set(message, [...(byMessage.get(message) ?? []), code ? "" : path]);
  }
  const kinds = [...byMessage];
  return (
    <>
      {kinds.slice(0, most).map(([message, paths]) => (
        <p key={message} className="mt-1">
          {paths[0] && <code>{paths[0]}</code>} {message}
          {paths.length > 1 && <span className="text-muted"> (and in {paths.length - 1} other places)</span>}
        </p>
      ))}
      {kinds.length > most && <p className="mt-1 text-muted">And {kinds.length - most} more.</p>}
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
