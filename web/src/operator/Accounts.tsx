import { useInfiniteQuery } from "@tanstack/react-query";
import { EllipsisVertical, KeyRound, Trash2, UserCheck, UserRound, UserX } from "lucide-react";
import { useState } from "react";
import { isFailure } from "../api/failure.ts";
import { useMe } from "../identity/queries.ts";
import { Answer } from "../page/Answer.tsx";
import { Section } from "../page/Page.tsx";
import { Button, IconButton } from "../ui/Button.tsx";
import { Empty } from "../ui/Empty.tsx";
import { Menu, MenuItem } from "../ui/Menu.tsx";
import { Notice } from "../ui/Notice.tsx";
import { Pill } from "../ui/Pill.tsx";
import { SearchBox } from "../ui/SearchBox.tsx";
import { Table, Td, Th } from "../ui/Table.tsx";
import { Time } from "../ui/Time.tsx";
import { useSettled } from "../ui/useSettled.ts";
import { type AccountAction, ChangeAccount } from "./ChangeAccount.tsx";
import { type Account, accountsQuery } from "./queries.ts";

/** Accounts are the people of the installation. */
export function Accounts() {
  const [typed, setTyped] = useState("");
  const q = useSettled(typed.trim());
  const accounts = useInfiniteQuery(accountsQuery(q));
  const [asked, setAsked] = useState<{ account: Account; action: AccountAction } | null>(null);
  if (isFailure(accounts.error, "accounts_elsewhere")) {
    return (
      <Section title="Accounts">
        <Notice>Another service manages the accounts of this installation. Manage them there.</Notice>
      </Section>
    );
  }
  return (
    <Section title="Accounts" intro="Everybody with an account, newest first.">
      <SearchBox
        className="mb-4 max-w-sm"
        label="Search accounts"
        placeholder="Name, email or ID"
        value={typed}
        onChange={setTyped}
      />
      <Answer query={accounts}>
        {({ pages }) => {
          const list = pages.flatMap((page) => page.rows);
          return list.length === 0 ? (
            <Empty icon={<UserRound aria-hidden />} title="No accounts found">
              No name, email address or ID contains “{q}”.
            </Empty>
          ) : (
            <AccountTable list={list} onAsk={(account, action) => setAsked({ account, action })} />
          );
        }}
      </Answer>
      {accounts.hasNextPage && (
        <Button className="mt-4" busy={accounts.isFetchingNextPage} onClick={() => void accounts.fetchNextPage()}>
          Show more
        </Button>
      )}
      {asked && <ChangeAccount {...asked} onClose={() => setAsked(null)} />}
    </Section>
  );
}

interface AccountTableProps {
  list: Account[];
  onAsk: (account: Account, action: AccountAction) => void;
}

function AccountTable({ list, onAsk }: AccountTableProps) {
  return (
    <Table
      label="Accounts"
      head={
        <>
          <Th>Person</Th>
          <Th className="max-md:hidden">Teams</Th>
          <Th className="max-md:hidden">Two-factor</Th>
          <Th className="max-md:hidden">Last seen</Th>
          <Th>
            <span className="sr-only">Actions</span>
          </Th>
        </>
      }
    >
      {list.map((account) => (
        <tr key={account.id}>
          <Td title={account.id} className="wrap-anywhere">
            <span className="font-medium">{account.name}</span> {account.operator && <Pill>operator</Pill>}
            <span className="block text-[13px] text-muted">
              {account.email}
              {!account.emailVerified && ", not verified"}
            </span>
            {account.suspendedAt && (
              <span className="block text-[13px] text-danger">
                suspended since <Time at={account.suspendedAt} />
              </span>
            )}
            <span className="block text-[13px] text-muted md:hidden">{teamsOf(account)}</span>
          </Td>
          <Td className="wrap-anywhere max-md:hidden">{teamsOf(account)}</Td>
          <Td className="max-md:hidden">{account.secondFactor ? <Pill tone="ok">on</Pill> : "off"}</Td>
          <Td className="whitespace-nowrap max-md:hidden">
            {account.lastSeenAt ? <Time at={account.lastSeenAt} /> : "never"}
          </Td>
          <Td>
            <Actions account={account} onAsk={(action) => onAsk(account, action)} />
          </Td>
        </tr>
      ))}
    </Table>
  );
}

function teamsOf({ teams }: Account): string {
  return teams.length === 0 ? "no team" : teams.map(({ name, role }) => `${name} (${role})`).join(", ");
}

function Actions({ account, onAsk }: { account: Account; onAsk: (action: AccountAction) => void }) {
  const mine = account.id === useMe().id;
  return (
    <Menu
      trigger={
        <IconButton
          size="sm"
          label={`Manage the account of ${account.name}`}
          icon={<EllipsisVertical className="size-4" aria-hidden />}
        />
      }
    >
      {account.suspendedAt ? (
        <MenuItem icon={<UserCheck className="size-4" aria-hidden />} onSelect={() => onAsk("resume")}>
          Resume…
        </MenuItem>
      ) : (
        <MenuItem
          icon={<UserX className="size-4" aria-hidden />}
          disabledReason={mine ? "Another operator can suspend you." : null}
          onSelect={() => onAsk("suspend")}
        >
          Suspend…
        </MenuItem>
      )}
      <MenuItem
        icon={<KeyRound className="size-4" aria-hidden />}
        disabledReason={account.secondFactor ? null : "Two-factor authentication is off."}
        onSelect={() => onAsk("reset")}
      >
        Reset second factor…
      </MenuItem>
      <MenuItem
        danger
        icon={<Trash2 className="size-4" aria-hidden />}
        disabledReason={mine ? "Delete your own account on the account page." : null}
        onSelect={() => onAsk("delete")}
      >
        Delete…
      </MenuItem>
    </Menu>
  );
}
