// The teams of this tab. Each has its own query cache and its own Api, and a query
// asks the Api of the cache that keeps its answer: nothing can be asked in one team
// and kept in another.
import { QueryClient, type QueryClientConfig, useQueryClient } from "@tanstack/react-query";
import { createContext, useContext } from "react";
import { type Api, newApi } from "./client.ts";

/** TeamClient is the query cache of one team, with the Api that fills it. */
export class TeamClient extends QueryClient {
  readonly api: Api;

  /** The team is null for visitors, and until the server has said which team a tab begins in. */
  constructor(
    readonly team: string | null,
    config?: QueryClientConfig,
  ) {
    super(config);
    this.api = newApi(team);
  }
}

/** teamOf is the TeamClient that a query, a mutation or a component works with. */
export function teamOf(client: QueryClient): TeamClient {
  if (!(client instanceof TeamClient)) throw new Error("this query cache belongs to no team");
  return client;
}

/** apiOf is the Api for a query function: that of the cache it fills. */
export function apiOf(client: QueryClient): Api {
  return teamOf(client).api;
}

/** useTeam is the TeamClient of the team that is on screen. */
export function useTeam(): TeamClient {
  return teamOf(useQueryClient());
}

/** useApi is the Api of the team that is on screen. It stays the same for as long as a component is there. */
export function useApi(): Api {
  return useTeam().api;
}

const key = "millrace.team";

/** enterTeamOfAddress makes the team that the address names that of the tab: links in mail name one by `?team=`. */
export function enterTeamOfAddress(): void {
  const address = new URL(location.href);
  const team = address.searchParams.get("team");
  if (!team) return;
  sessionStorage.setItem(key, team);
  address.searchParams.delete("team");
  history.replaceState(history.state, "", address);
}

/** Teams has a TeamClient for each team that was entered in this tab, and knows which one is on screen. */
export class Teams {
  private readonly clients = new Map<string, TeamClient>();
  private readonly listeners = new Set<() => void>();
  private shown: TeamClient;

  /** A reload of the tab stays in its team; other tabs have their own. */
  constructor(
    private readonly make: (team: string | null) => TeamClient,
    private readonly storage: Pick<Storage, "getItem" | "setItem" | "removeItem"> = sessionStorage,
  ) {
    this.shown = this.of(storage.getItem(key));
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  /** current is the client of the team that is on screen. */
  readonly current = (): TeamClient => this.shown;

  /** of is the client of a team, which keeps what was read of it. Each visit without a team begins with an empty cache. */
  of(team: string | null): TeamClient {
    const known = team === null ? undefined : this.clients.get(team);
    const client = known ?? this.make(team);
    if (team !== null) this.clients.set(team, client);
    return client;
  }

  /** enter shows another team in this tab. */
  enter(team: string | null): void {
    if (team === null) this.storage.removeItem(key);
    else this.storage.setItem(key, team);
    if (team === this.shown.team) return;
    this.shown = this.of(team);
    for (const listener of this.listeners) listener();
  }
}

const TeamsContext = createContext<Teams | null>(null);

/** TeamsProvider gives the pages below it the Teams of the tab. */
export const TeamsProvider = TeamsContext.Provider;

/** useTeams is the Teams of the tab. */
export function useTeams(): Teams {
  const teams = useContext(TeamsContext);
  if (!teams) throw new Error("outside of TeamsProvider");
  return teams;
}
