import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import { api, ask, askPage, type Schemas } from "../api/client.ts";

export type Worker = Schemas["OperatorWorker"];
export type OpenRun = Schemas["OperatorRun"];
export type Team = Schemas["OperatorTeam"];

const refetchInterval = 15_000;

export const versionQuery = queryOptions({
  queryKey: ["operator", "version"],
  queryFn: () => ask(api.GET("/api/operator/version")),
});

export const workersQuery = queryOptions({
  queryKey: ["operator", "workers"],
  queryFn: () => ask(api.GET("/api/operator/workers")),
  refetchInterval,
});

export const queueQuery = queryOptions({
  queryKey: ["operator", "queue"],
  queryFn: () => ask(api.GET("/api/operator/queue")),
  refetchInterval,
});

export const diskQuery = queryOptions({
  queryKey: ["operator", "disk"],
  queryFn: () => ask(api.GET("/api/operator/disk")),
  refetchInterval,
});

export const choresQuery = queryOptions({
  queryKey: ["operator", "chores"],
  queryFn: () => ask(api.GET("/api/operator/chores")),
  refetchInterval,
});

export const errorsQuery = queryOptions({
  queryKey: ["operator", "errors"],
  queryFn: () => ask(api.GET("/api/operator/errors")),
  refetchInterval,
});

export const teamsQuery = infiniteQueryOptions({
  queryKey: ["operator", "teams"],
  queryFn: ({ pageParam }) =>
    askPage(api.GET("/api/operator/teams", { params: { query: { ...(pageParam && { cursor: pageParam }) } } })),
  initialPageParam: "",
  getNextPageParam: (last) => last.next ?? undefined,
});
