import type { DropdownMenu } from "radix-ui";
import { createContext, useContext } from "react";

/** MenuParts is what the items of an open menu are made of. */
export const MenuParts = createContext<typeof DropdownMenu | null>(null);

export function useMenuParts(): typeof DropdownMenu {
  const parts = useContext(MenuParts);
  if (!parts) throw new Error("outside of a menu");
  return parts;
}
