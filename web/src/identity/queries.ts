import { queryOptions, useQuery, useSuspenseQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useEffect } from "react";
import { ask, type Schemas } from "../api/client.ts";
import { isFailure } from "../api/failure.ts";
import { apiOf, useApi, useTeam, useTeams } from "../api/team.ts";
import { type Action, whyNot } from "./access.ts";

export type Me = Schemas["Me"];

/** meQuery is who is signed in and what they are in the team; null for visitors. */
export const meQuery = queryOptions({
  queryKey: ["me"],
  queryFn: async ({ client }): Promise<Me | null> => {
    try {
      return await ask(apiOf(client).GET("/api/me"));
    } catch (error) {
      if (isFailure(error) && error.status === 401) return null;
      throw error;
    }
  },
  staleTime: 60_000,
  gcTime: Number.POSITIVE_INFINITY, // uploads name their team by it
  retry: (failures, error) => failures < 3 && isFailure(error) && (error.status === 0 || error.status >= 500),
});

/**
 * useArrival is who is signed in, for the frame of the pages: undefined until that is known and the tab is in a team.
 * A tab that has no team yet enters the one that the server names; one whose team the person has left looks for another.
 */
export function useArrival() {
  const { team } = useTeam();
  const teams = useTeams();
  const { data, error, refetch } = useQuery(meQuery);
  const left = team !== null && isFailure(error, "not_a_member");
  const begins = team === null ? data?.team.id : undefined;
  useEffect(() => {
    if (left) teams.enter(null);
    if (!begins) return;
    teams.of(begins).setQueryData(meQuery.queryKey, data);
    teams.enter(begins);
  }, [left, begins, teams, data]);
  if (left || begins) return { me: undefined, error: null, retry: refetch };
  return { me: data, error: data === undefined ? error : null, retry: refetch };
}

/** useMe is who is signed in; only inside the shell, which has made sure of it. */
export function useMe(): Me {
  const { data } = useSuspenseQuery(meQuery);
  if (!data) throw new Error("nobody is signed in");
  return data;
}

/** useMaybeMe is who is signed in, or null. */
export function useMaybeMe(): Me | null {
  return useQuery(meQuery).data ?? null;
}

/** useWhyNot tells why this person cannot do something, or null. */
export function useWhyNot(): (action: Action) => string | null {
  const me = useMe();
  return (action) => whyNot(me.team.role, action);
}

/** featuresQuery is what this server is equipped with. */
const featuresQuery = queryOptions({
  queryKey: ["features"],
  queryFn: ({ client }) => ask(apiOf(client).GET("/api/features")),
  staleTime: Number.POSITIVE_INFINITY,
});

/** useMissing tells whether the server is known to lack something; until it has said so, it does not. */
export function useMissing(feature: keyof Schemas["Features"]): boolean {
  const signedIn = useMaybeMe() !== null;
  return useQuery({ ...featuresQuery, enabled: signedIn }).data?.[feature] === false;
}

export const teamsQuery = queryOptions({
  queryKey: ["teams"],
  queryFn: ({ client }) => ask(apiOf(client).GET("/auth/teams")),
});

/** useEnterTeam takes this tab, and the session's next one, into a team. */
export function useEnterTeam(): (id: string) => Promise<void> {
  const api = useApi();
  const teams = useTeams();
  const navigate = useNavigate();
  return async (id) => {
    await ask(api.POST("/auth/teams/{id}/activate", { params: { path: { id } } }));
    await navigate({ to: "/workflows", search: {} }); // the page may be about something of the team that is left
    teams.enter(id);
  };
}
