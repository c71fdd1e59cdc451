import { DropdownMenu } from "radix-ui";
import type { ReactElement, ReactNode } from "react";
import { MenuParts } from "./menuParts.ts";

interface MenuBodyProps {
  trigger: ReactElement;
  children: ReactNode;
  align: "start" | "end";
}

/** MenuBody is the menu itself; it opens as soon as it is there. */
export default function MenuBody({ trigger, children, align }: MenuBodyProps) {
  return (
    <DropdownMenu.Root modal={false} defaultOpen>
      <DropdownMenu.Trigger asChild>{trigger}</DropdownMenu.Trigger>
      <DropdownMenu.Portal>
        <DropdownMenu.Content
          align={align}
          sideOffset={6}
          collisionPadding={8}
          className="z-50 max-h-(--radix-dropdown-menu-content-available-height) min-w-48 animate-[fade_120ms] overflow-y-auto rounded-lg border bg-raised p-1 shadow-lift"
        >
          <MenuParts value={DropdownMenu}>{children}</MenuParts>
        </DropdownMenu.Content>
      </DropdownMenu.Portal>
    </DropdownMenu.Root>
  );
}
