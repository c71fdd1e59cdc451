import { useNavigate } from "@tanstack/react-router";
import { useCallback } from "react";
import { changed } from "../ui/changed.ts";

type Change<S> = { [K in keyof S]?: S[K] | undefined };

/** useChange changes parameters of the address; what was scrolled to and the way back stay as they were. */
export function useChange<S extends object>(): (change: Change<S>) => void {
  const navigate = useNavigate();
  return useCallback(
    (change) =>
      void navigate({
        to: ".",
        search: (old) => changed(old as S, change) as never,
        replace: true,
        resetScroll: false,
      }),
    [navigate],
  );
}
