import { useInfiniteQuery, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { Bell } from "lucide-react";
import { apiOf, useApi } from "../api/team.ts";
import { useMissing } from "../identity/queries.ts";
import { Answer } from "../page/Answer.tsx";
import { Page, Section } from "../page/Page.tsx";
import { Problem } from "../page/Problem.tsx";
import { Button } from "../ui/Button.tsx";
import { classes } from "../ui/classes.ts";
import { Empty } from "../ui/Empty.tsx";
import { Checkbox } from "../ui/Field.tsx";
import { SkeletonRows } from "../ui/Skeleton.tsx";
import { Table, Td, Th } from "../ui/Table.tsx";
import { Time } from "../ui/Time.tsx";
import {
  type Choice,
  choicesQuery,
  choose,
  markRead,
  type Notification,
  pageOfNotifications,
  unreadQuery,
} from "./queries.ts";

/** NotificationsPage is what one was told in this team, and what one wants to be told. */
export function NotificationsPage() {
  const api = useApi();
  const client = useQueryClient();
  const free = useMissing("billing");
  const unread = useQuery(unreadQuery).data ?? 0;
  const inbox = useInfiniteQuery({
    queryKey: ["notifications", "inbox", unread],
    queryFn: ({ client, pageParam }) => pageOfNotifications(apiOf(client), pageParam),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.next ?? undefined,
  });
  const mark = useMutation({
    mutationFn: (what: Parameters<typeof markRead>[1]) => markRead(api, what),
    onSuccess: () => client.invalidateQueries({ queryKey: ["notifications"] }),
  });
  const rows = inbox.data?.pages.flatMap((page) => page.rows) ?? [];
  return (
    <Page
      title="Notifications"
      actions={
        <Button
          busy={mark.isPending}
          disabledReason={unread === 0 ? "No unread notifications." : null}
          onClick={() => mark.mutate({ all: true })}
        >
          Mark all as read
        </Button>
      }
    >
      <div className="mb-8">
        {inbox.isPending && <SkeletonRows rows={4} />}
        {inbox.isError && <Problem error={inbox.error} retry={() => void inbox.refetch()} />}
        {inbox.data && rows.length === 0 && (
          <Empty icon={<Bell className="size-8" aria-hidden />} title="No notifications yet">
            You're notified here when your run fails{free ? "" : ", a budget is nearly spent"} or your schedule is
            paused.
          </Empty>
        )}
        <ul className="divide-y rounded-xl border bg-surface empty:hidden">
          {rows.map((each) => (
            <Row key={each.id} notification={each} onOpen={() => !each.readAt && mark.mutate({ ids: [each.id] })} />
          ))}
        </ul>
        {inbox.hasNextPage && (
          <Button className="mt-3" busy={inbox.isFetchingNextPage} onClick={() => void inbox.fetchNextPage()}>
            Show older
          </Button>
        )}
      </div>
      <Choices />
    </Page>
  );
}

function Row({ notification, onOpen }: { notification: Notification; onOpen: () => void }) {
  return (
    <li className="p-4">
      <Link to={notification.path} onClick={onOpen} className="block hover:underline">
        <span className={classes("break-words", !notification.readAt && "font-semibold")}>{notification.title}</span>
        {!notification.readAt && <span className="sr-only"> (unread)</span>}
      </Link>
      {notification.text && (
        <p className="mt-1 line-clamp-6 text-sm break-words whitespace-pre-line text-muted">{notification.text}</p>
      )}
      <p className="mt-1 text-[13px] text-muted">
        <Time at={notification.createdAt} />
      </p>
    </li>
  );
}

const words: Record<Choice["topic"], string> = {
  ownRuns: "My run failed or was interrupted",
  allRuns: "Any run in the team ended",
  budgets: "A budget is nearly spent",
  schedules: "My schedule was paused",
  invitations: "I was invited to a team",
};

function Choices() {
  const api = useApi();
  const choices = useQuery(choicesQuery);
  const free = useMissing("billing");
  const client = useQueryClient();
  const change = useMutation({
    mutationFn: (choice: Choice) => choose(api, choice),
    onSuccess: (data) => client.setQueryData(choicesQuery.queryKey, data),
  });
  return (
    <Section
      title="Notification settings"
      intro="These settings apply to all your teams. Emails about runs are sent at most every 15 minutes."
    >
      <Answer query={choices} rows={5}>
        {({ topics }) => (
          <Table
            label="Notification settings"
            head={
              <>
                <Th>Event</Th>
                <Th>In app</Th>
                <Th>Email</Th>
              </>
            }
          >
            {topics
              .filter(({ topic }) => !(free && topic === "budgets"))
              .map((choice) => (
                <tr key={choice.topic}>
                  <Td>{words[choice.topic]}</Td>
                  {(["app", "mail"] as const).map((way) => (
                    <Td key={way}>
                      {way === "mail" && choice.topic === "invitations" ? (
                        "always"
                      ) : (
                        <Checkbox
                          hideLabel
                          label={`${words[choice.topic]}: ${way === "app" ? "in app" : "email"}`}
                          checked={choice[way]}
                          onChange={(event) => change.mutate({ ...choice, [way]: event.target.checked })}
                        />
                      )}
                    </Td>
                  ))}
                </tr>
              ))}
          </Table>
        )}
      </Answer>
    </Section>
  );
}
