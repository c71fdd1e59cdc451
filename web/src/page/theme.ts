import { useSyncExternalStore } from "react";

export type Theme = "system" | "light" | "dark";

const key = "millrace.theme";

export function currentTheme(): Theme {
  const value = localStorage.getItem(key);
  return value === "light" || value === "dark" ? value : "system";
}

/** chooseTheme keeps the choice; public/theme.js applies it. */
export function chooseTheme(theme: Theme): void {
  if (theme === "system") localStorage.removeItem(key);
  else localStorage.setItem(key, theme);
  dispatchEvent(new Event("millrace:theme"));
}

export function useTheme(): Theme {
  return useSyncExternalStore((changed) => {
    addEventListener("millrace:theme", changed);
    addEventListener("storage", changed);
    return () => {
      removeEventListener("millrace:theme", changed);
      removeEventListener("storage", changed);
    };
  }, currentTheme);
}

/** useDark tells what is on screen, for canvases that cannot read CSS. */
export function useDark(): boolean {
  return useSyncExternalStore(
    (changed) => {
      const observer = new MutationObserver(changed);
      observer.observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
      return () => observer.disconnect();
    },
    () => document.documentElement.dataset.theme === "dark",
  );
}
