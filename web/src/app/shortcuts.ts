import { useEffect, useRef } from "react";
import { singleKeys } from "../page/singleKeys.ts";
import { covered, typing } from "../ui/typing.ts";
import { places } from "./rail.ts";

interface Actions {
  openPalette: () => void;
  go: (to: (typeof places)[number]["to"]) => void;
}

/** useShortcuts listens for Ctrl/Cmd-K, and for `?` and `g` followed by a place's letter unless these are turned off or covered. */
export function useShortcuts(actions: Actions): void {
  const latest = useRef(actions);
  useEffect(() => {
    latest.current = actions;
  });
  useEffect(() => {
    let leader = 0;
    const listen = (event: KeyboardEvent) => {
      if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
        event.preventDefault();
        latest.current.openPalette();
        return;
      }
      if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target)) return;
      if (!singleKeys() || covered()) {
        leader = 0;
        return;
      }
      if (event.key === "?") {
        event.preventDefault(); // or it is typed into what opens
        latest.current.openPalette();
        return;
      }
      const place = places.find((each) => each.key === event.key);
      if (place && Date.now() - leader < 1500) {
        leader = 0;
        event.preventDefault();
        latest.current.go(place.to);
      } else {
        leader = event.key === "g" ? Date.now() : 0;
      }
    };
    addEventListener("keydown", listen);
    return () => removeEventListener("keydown", listen);
  }, []);
}
