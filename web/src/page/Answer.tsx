import type { UseQueryResult } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { SkeletonRows } from "../ui/Skeleton.tsx";
import { Problem } from "./Problem.tsx";

/**
 * Answer shows what a query gave. What is there already stays on screen while
 * it is asked for again, even when asking fails.
 */
export function Answer<T>({
  query,
  children,
  rows,
  loading,
}: {
  query: UseQueryResult<T>;
  children: (data: T) => ReactNode;
  rows?: number;
  loading?: ReactNode;
}) {
  if (query.data !== undefined) return <>{children(query.data)}</>;
  if (query.isError) return <Problem error={query.error} retry={() => void query.refetch()} />;
  return <>{loading ?? <SkeletonRows {...(rows !== undefined && { rows })} />}</>;
}
