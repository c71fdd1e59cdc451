import type { UseQueryResult } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { isFailure } from "../api/failure.ts";
import { SkeletonRows } from "../ui/Skeleton.tsx";
import { Elsewhere } from "./Elsewhere.tsx";
import { Problem } from "./Problem.tsx";

interface AnswerProps<T> {
  query: UseQueryResult<T>;
  children: (data: T) => ReactNode;
  rows?: number;
  loading?: ReactNode;
  /** What was asked for, if it may belong to another team of the person's. */
  id?: string | undefined;
}

/**
 * Answer shows what a query gave. What is there already stays on screen while
 * it is asked for again, even when asking fails.
 */
export function Answer<T>({ query, children, rows, loading, id }: AnswerProps<T>) {
  if (query.data !== undefined) return <>{children(query.data)}</>;
  const waiting = loading ?? <SkeletonRows {...(rows !== undefined && { rows })} />;
  if (!query.isError) return waiting;
  const problem = <Problem error={query.error} retry={() => void query.refetch()} />;
  if (!id || !isFailure(query.error) || query.error.status !== 404) return problem;
  return (
    <Elsewhere id={id} loading={waiting}>
      {problem}
    </Elsewhere>
  );
}
