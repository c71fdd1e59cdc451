import { useInfiniteQuery } from "@tanstack/react-query";
import { Folder, FolderUp } from "lucide-react";
import { useState } from "react";
import { askPage } from "../api/client.ts";
import { useApi } from "../api/team.ts";
import type { Connection } from "../connections/queries.ts";
import { Answer } from "../page/Answer.tsx";
import { Button } from "../ui/Button.tsx";
import { Field, Select } from "../ui/Field.tsx";
import { bytes } from "../ui/format.ts";
import { above, lastPart } from "./browse.ts";

interface BucketBrowserProps {
  buckets: Connection[];
  folder: boolean;
  onPick: (url: string, connection: string) => void;
}

/** BucketBrowser looks into the buckets that the team is connected to. */
export default function BucketBrowser({ buckets, folder, onPick }: BucketBrowserProps) {
  const api = useApi();
  const [id, setId] = useState(buckets[0]?.id ?? "");
  const connection = buckets.find((each) => each.id === id);
  const top = connection?.prefix ?? "";
  const [prefix, setPrefix] = useState(top);
  const pages = useInfiniteQuery({
    queryKey: ["objects", id, prefix],
    queryFn: async ({ pageParam }) => {
      const query = { prefix, ...(pageParam && { cursor: pageParam }) };
      return askPage(api.GET("/api/connections/{id}/objects", { params: { path: { id }, query } }));
    },
    initialPageParam: "",
    getNextPageParam: (page) => page.next,
    enabled: connection !== undefined,
    retry: false,
  });
  if (!connection) return null;
  const here = `s3://${connection.bucket}/${prefix}`;
  return (
    <div className="mt-2 space-y-2">
      {buckets.length > 1 && (
        <Field label="Bucket">
          <Select
            value={id}
            onChange={(event) => {
              setId(event.target.value);
              setPrefix(buckets.find((each) => each.id === event.target.value)?.prefix ?? "");
            }}
          >
            {buckets.map((each) => (
              <option key={each.id} value={each.id}>
                {each.name}
              </option>
            ))}
          </Select>
        </Field>
      )}
      <p className="flex flex-wrap items-center gap-2 text-[13px]">
        <code className="min-w-0 flex-1 break-all">{here}</code>
        {folder && prefix !== "" && (
          <Button size="sm" onClick={() => onPick(here, id)}>
            Use this folder
          </Button>
        )}
      </p>
      <Answer query={pages}>
        {({ pages: list }) => {
          const folders = list.flatMap((page) => page.rows.folders);
          const objects = list.flatMap((page) => page.rows.objects);
          return (
            <ul className="max-h-64 overflow-y-auto rounded-lg border text-sm" aria-label="Objects">
              {prefix !== top && (
                <li className="border-b px-3 py-1.5">
                  <button
                    type="button"
                    className="flex items-center gap-2"
                    onClick={() => setPrefix(above(prefix, top))}
                  >
                    <FolderUp className="size-4 text-muted" aria-hidden /> Up
                  </button>
                </li>
              )}
              {folders.map((each) => (
                <li key={each} className="border-b px-3 py-1.5 last:border-b-0">
                  <button
                    type="button"
                    className="flex w-full min-w-0 items-center gap-2 text-left"
                    onClick={() => setPrefix(each)}
                  >
                    <Folder className="size-4 shrink-0 text-muted" aria-hidden />
                    <span className="truncate">{lastPart(each)}</span>
                  </button>
                </li>
              ))}
              {objects.map((object) => (
                <li key={object.url} className="flex items-center gap-2 border-b px-3 py-1.5 last:border-b-0">
                  <span className="min-w-0 flex-1 truncate">{object.name}</span>
                  <span className="text-[13px] whitespace-nowrap text-muted">{bytes(object.size)}</span>
                  {!folder && (
                    <Button size="sm" aria-label={`Use ${object.name}`} onClick={() => onPick(object.url, id)}>
                      Use
                    </Button>
                  )}
                </li>
              ))}
              {folders.length + objects.length === 0 && (
                <li className="px-3 py-4 text-center text-muted">This folder is empty.</li>
              )}
            </ul>
          );
        }}
      </Answer>
      {pages.hasNextPage && (
        <Button size="sm" busy={pages.isFetchingNextPage} onClick={() => void pages.fetchNextPage()}>
          Show more
        </Button>
      )}
    </div>
  );
}
