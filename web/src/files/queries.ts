import { queryOptions } from "@tanstack/react-query";
import { api, ask, type Schemas } from "../api/client.ts";

export type FileRow = Schemas["File"];

/** filesQuery is the team's files, uploads first. Their addresses work for a quarter of an hour. */
export const filesQuery = queryOptions({
  queryKey: ["files"],
  queryFn: () => ask(api.GET("/api/files")),
  refetchInterval: 5 * 60_000,
});

export function deleteFile({ key, source }: Pick<FileRow, "key" | "source">) {
  return ask(api.POST("/api/files/delete", { body: { key, source } }));
}
