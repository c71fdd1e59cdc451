import { queryOptions, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Star } from "lucide-react";
import { ask } from "../api/client.ts";
import { apiOf, useApi } from "../api/team.ts";
import { IconButton } from "../ui/Button.tsx";

const favoritesQuery = queryOptions({
  queryKey: ["favorites"],
  queryFn: ({ client }) => ask(apiOf(client).GET("/api/favorites")),
  staleTime: 60_000,
});

/** useFavorites is the ids of what somebody has marked, workflows and runs. */
export function useFavorites(): Set<string> {
  const { data } = useQuery(favoritesQuery);
  return new Set([...(data?.workflows ?? []), ...(data?.runs ?? [])]);
}

/** Favorite marks a workflow or a run, and takes the mark off. */
export function Favorite({ id, name, on }: { id: string; name: string; on: boolean }) {
  const api = useApi();
  const client = useQueryClient();
  const toggle = useMutation({
    mutationFn: () => {
      const params = { params: { path: { id } } };
      return ask(on ? api.DELETE("/api/favorites/{id}", params) : api.PUT("/api/favorites/{id}", params));
    },
    onSettled: () => {
      void client.invalidateQueries({ queryKey: ["runs"] });
      return client.invalidateQueries({ queryKey: ["favorites"] });
    },
  });
  return (
    <IconButton
      size="sm"
      label={`${name} is a favorite`}
      aria-pressed={on}
      icon={<Star className={on ? "size-4 fill-current text-accent" : "size-4 text-muted"} aria-hidden />}
      onClick={() => toggle.mutate()}
    />
  );
}
