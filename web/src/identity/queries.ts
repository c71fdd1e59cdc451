import { queryOptions, useQuery, useQueryClient, useSuspenseQuery } from "@tanstack/react-query";
import { api, ask, type Schemas } from "../api/client.ts";
import { isFailure } from "../api/failure.ts";
import { currentTeam, enterTeam } from "../api/team.ts";
import { type Action, whyNot } from "./access.ts";

export type Me = Schemas["Me"];

export const meQuery = queryOptions({
  queryKey: ["me"],
  queryFn: async (): Promise<Me | null> => {
    try {
      const me = await ask(api.GET("/api/me"));
      enterTeam(me.team.id);
      return me;
    } catch (error) {
      if (isFailure(error) && error.status === 401) return null;
      // The team of this tab is gone, or we are no longer in it.
      if (isFailure(error) && error.status === 403 && currentTeam()) {
        enterTeam(null);
        return ask(api.GET("/api/me"));
      }
      throw error;
    }
  },
  staleTime: 60_000,
  retry: (failures, error) => failures < 3 && isFailure(error) && (error.status === 0 || error.status >= 500),
});

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
  queryFn: () => ask(api.GET("/api/features")),
  staleTime: Number.POSITIVE_INFINITY,
});

/** useMissing tells whether the server is known to lack something; until it has said so, it does not. */
export function useMissing(feature: keyof Schemas["Features"]): boolean {
  const signedIn = useMaybeMe() !== null;
  return useQuery({ ...featuresQuery, enabled: signedIn }).data?.[feature] === false;
}

export const teamsQuery = queryOptions({
  queryKey: ["teams"],
  queryFn: () => ask(api.GET("/auth/teams")),
  staleTime: 60_000,
});

/** useEnterTeam takes this tab, and the session's next one, into a team. */
export function useEnterTeam(): (id: string) => Promise<void> {
  const client = useQueryClient();
  return async (id) => {
    await ask(api.POST("/auth/teams/{id}/activate", { params: { path: { id } } }));
    enterTeam(id);
    client.removeQueries({ predicate: (query) => query.queryKey[0] !== "me" && query.queryKey[0] !== "teams" });
    await client.invalidateQueries();
  };
}
