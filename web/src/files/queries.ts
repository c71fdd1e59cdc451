import { infiniteQueryOptions, keepPreviousData, queryOptions, useInfiniteQuery } from "@tanstack/react-query";
import { useEffect } from "react";
import { type Api, ask, askPage, type Schemas } from "../api/client.ts";
import { apiOf } from "../api/team.ts";

export type FileRow = Schemas["File"];

export interface FileFilter {
  /** Words that are all in the name. */
  q?: string;
  source?: FileRow["source"];
  directory?: boolean;
}

const freshAddresses = 5 * 60_000; // they work for a quarter of an hour

/** Pages is how many files are read at first, and then at a time. */
interface Pages {
  first: number;
  next: number;
}

/** filesQuery is the team's files in pages, uploads first. */
export const filesQuery = (filter: FileFilter, pages: Pages) =>
  infiniteQueryOptions({
    queryKey: ["files", filter, pages],
    queryFn: ({ client, pageParam, signal }) => {
      const query = { ...filter, ...(pageParam ? { limit: pages.next, cursor: pageParam } : { limit: pages.first }) };
      return askPage(apiOf(client).GET("/api/files", { params: { query }, signal }));
    },
    initialPageParam: "",
    getNextPageParam: (page) => page.next ?? undefined,
    placeholderData: keepPreviousData,
    refetchInterval: freshAddresses,
  });

/** useFiles is the files that were read so far, and a way to read on. */
export function useFiles(filter: FileFilter, pages: Pages) {
  const query = useInfiniteQuery(filesQuery(filter, pages));
  const { hasNextPage, isFetchingNextPage, fetchNextPage, data } = query;
  // A search among very many files may find none at first.
  const empty = data !== undefined && data.pages.at(-1)?.rows.length === 0;
  useEffect(() => {
    if (empty && hasNextPage && !isFetchingNextPage) void fetchNextPage();
  }, [empty, hasNextPage, isFetchingNextPage, fetchNextPage]);
  return {
    query,
    rows: data?.pages.flatMap((page) => page.rows) ?? [],
    searching: empty && hasNextPage,
    more: hasNextPage ? () => void fetchNextPage() : null,
    busy: isFetchingNextPage,
  };
}

const keysAtOnce = 100; // as many as the server takes
const longQuery = 6000; // of an address, which proxies may limit to 8 KB

/** byAddress groups keys, so that each group fits into an address. */
function byAddress(keys: readonly string[]): string[][] {
  const groups: string[][] = [];
  let length = 0;
  for (const key of keys) {
    const own = `&key=${encodeURIComponent(key)}`.length;
    const last = groups.at(-1);
    if (last && last.length < keysAtOnce && length + own <= longQuery) {
      last.push(key);
      length += own;
    } else {
      groups.push([key]);
      length = own;
    }
  }
  return groups;
}

/** filesByKeyQuery is files by their keys. Those that are gone are left out. */
export const filesByKeyQuery = (keys: string[]) =>
  queryOptions({
    queryKey: ["files", "by key", keys],
    queryFn: async ({ client, signal }) => {
      const found = new Map<string, FileRow>();
      for (const key of byAddress(keys))
        for (const row of await ask(apiOf(client).GET("/api/files", { params: { query: { key } }, signal })))
          found.set(row.key, row);
      return found;
    },
    refetchInterval: freshAddresses,
    enabled: keys.length > 0,
  });

export function deleteFile(api: Api, { key, source }: Pick<FileRow, "key" | "source">) {
  return ask(api.POST("/api/files/delete", { body: { key, source } }));
}
