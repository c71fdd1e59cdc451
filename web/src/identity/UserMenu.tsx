import { Link } from "@tanstack/react-router";
import { BookOpen, LogOut, Server, UserRound } from "lucide-react";
import { useApi } from "../api/team.ts";
import { Button } from "../ui/Button.tsx";
import { Menu, MenuItem, MenuLabel, MenuLine, MenuLink } from "../ui/Menu.tsx";
import { useMe } from "./queries.ts";
import { signOut } from "./session.ts";

export function UserMenu() {
  const me = useMe();
  const api = useApi();
  return (
    <Menu
      align="start"
      trigger={
        <Button size="sm" look="quiet" className="min-w-0 flex-1 justify-start!" aria-label={`${me.name}: your menu`}>
          <UserRound className="size-4 shrink-0" aria-hidden />
          <span className="truncate">{me.name}</span>
        </Button>
      }
    >
      <MenuLabel>{me.email}</MenuLabel>
      <MenuLink>
        <Link to="/account">
          <UserRound className="size-4" aria-hidden /> Account
        </Link>
      </MenuLink>
      {me.operator && (
        <MenuLink>
          <Link to="/operator">
            <Server className="size-4" aria-hidden /> Installation
          </Link>
        </MenuLink>
      )}
      <MenuLink>
        <a href="/help">
          <BookOpen className="size-4" aria-hidden /> Help
        </a>
      </MenuLink>
      <MenuLink>
        <a href="/docs">
          <BookOpen className="size-4" aria-hidden /> API reference
        </a>
      </MenuLink>
      <MenuLine />
      <MenuItem icon={<LogOut className="size-4" aria-hidden />} onSelect={() => void signOut(api)}>
        Sign out
      </MenuItem>
    </Menu>
  );
}
