import { infiniteQueryOptions, keepPreviousData, queryOptions } from "@tanstack/react-query";
import { ask, askPage, type Schemas } from "../api/client.ts";
import { apiOf } from "../api/team.ts";
import type { AuditFilter } from "../audit/queries.ts";

export type Worker = Schemas["OperatorWorker"];
export type OpenRun = Schemas["OperatorRun"];
export type Team = Schemas["OperatorTeam"];
export type Account = Schemas["OperatorUser"];

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

/** accountsQuery are the accounts whose name, address or id has q in it, newest first. */
export const accountsQuery = (q: string) =>
  infiniteQueryOptions({
    queryKey: ["operator", "accounts", q],
    queryFn: ({ client, pageParam }) =>
      askPage(
        apiOf(client).GET("/api/operator/users", {
          params: { query: { limit: 50, ...(q && { q }), ...(pageParam && { cursor: pageParam }) } },
        }),
      ),
    initialPageParam: "",
    getNextPageParam: (last) => last.next ?? undefined,
    placeholderData: keepPreviousData,
  });

export const installationAuditQuery = (filter: AuditFilter) =>
  infiniteQueryOptions({
    queryKey: ["operator", "audit", filter],
    queryFn: ({ client, pageParam }) =>
      askPage(
        apiOf(client).GET("/api/operator/audit", {
          params: { query: { limit: 50, ...filter, ...(pageParam && { cursor: pageParam }) } },
        }),
      ),
    initialPageParam: "",
    getNextPageParam: (last) => last.next ?? undefined,
  });
