import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import { ask, askPage, type Schemas } from "../api/client.ts";
import { apiOf } from "../api/team.ts";

export type Worker = Schemas["OperatorWorker"];
export type OpenRun = Schemas["OperatorRun"];
export type Team = Schemas["OperatorTeam"];

const refetchInterval = 15_000;

export const versionQuery = queryOptions({
  queryKey: ["operator", "version"],
  queryFn: ({ client }) => ask(apiOf(client).GET("/api/operator/version")),
});

export const workersQuery = queryOptions({
  queryKey: ["operator", "workers"],
  queryFn: ({ client }) => ask(apiOf(client).GET("/api/operator/workers")),
  refetchInterval,
});

export const queueQuery = queryOptions({
  queryKey: ["operator", "queue"],
  queryFn: ({ client }) => ask(apiOf(client).GET("/api/operator/queue")),
  refetchInterval,
});

export const diskQuery = queryOptions({
  queryKey: ["operator", "disk"],
  queryFn: ({ client }) => ask(apiOf(client).GET("/api/operator/disk")),
  refetchInterval,
});

export const choresQuery = queryOptions({
  queryKey: ["operator", "chores"],
  queryFn: ({ client }) => ask(apiOf(client).GET("/api/operator/chores")),
  refetchInterval,
});

export const errorsQuery = queryOptions({
  queryKey: ["operator", "errors"],
  queryFn: ({ client }) => ask(apiOf(client).GET("/api/operator/errors")),
  refetchInterval,
});

export const teamsQuery = infiniteQueryOptions({
  queryKey: ["operator", "teams"],
  queryFn: ({ client, pageParam }) =>
    askPage(
      apiOf(client).GET("/api/operator/teams", { params: { query: { ...(pageParam && { cursor: pageParam }) } } }),
    ),
  initialPageParam: "",
  getNextPageParam: (last) => last.next ?? undefined,
});
