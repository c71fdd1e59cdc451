import { useQuery } from "@tanstack/react-query";
import { CircleCheck, Server } from "lucide-react";
import type { ReactNode } from "react";
import { useApi } from "../api/team.ts";
import { useMe } from "../identity/queries.ts";
import { Answer } from "../page/Answer.tsx";
import { Page, Section } from "../page/Page.tsx";
import { Button } from "../ui/Button.tsx";
import { Empty } from "../ui/Empty.tsx";
import { bytes, duration } from "../ui/format.ts";
import { Notice } from "../ui/Notice.tsx";
import { Pill } from "../ui/Pill.tsx";
import { Table, Td, Th } from "../ui/Table.tsx";
import { Time } from "../ui/Time.tsx";
import { Accounts } from "./Accounts.tsx";
import { Announcements } from "./Announcements.tsx";
import { testMail, useAction } from "./actions.ts";
import { GroupMapping } from "./GroupMapping.tsx";
import { InstallationAudit } from "./InstallationAudit.tsx";
import { NewTeams } from "./NewTeams.tsx";
import { Queue } from "./Queue.tsx";
import { choresQuery, diskQuery, errorsQuery, versionQuery } from "./queries.ts";
import { Teams } from "./Teams.tsx";
import { Workers } from "./Workers.tsx";

/** OperatorPage is the installation, for those who look after it. What teams keep in it is not shown here. */
export function OperatorPage() {
  const me = useMe();
  return (
    <Page
      title="Installation"
      intro="The state of machines, queue and teams. Team data, such as the names of runs and files, isn't shown."
    >
      {me.operator ? (
        <>
          <About />
          <Announcements />
          <Workers />
          <Queue />
          <Disk />
          <Teams />
          <NewTeams />
          <Accounts />
          <GroupMapping />
          <Chores />
          <Errors />
          <InstallationAudit />
        </>
      ) : (
        <Notice>
          Only operators of this installation can see this page. To make an account an operator, run{" "}
          <code>millrace admin user set-operator</code> on the server.
        </Notice>
      )}
    </Page>
  );
}

function Facts({ label, rows }: { label: string; rows: [string, ReactNode][] }) {
  return (
    <dl aria-label={label} className="grid grid-cols-2 gap-x-6 gap-y-3 sm:grid-cols-4">
      {rows.map(([name, value]) => (
        <div key={name} className="min-w-0">
          <dt className="text-[13px] text-muted">{name}</dt>
          <dd className="truncate">{value}</dd>
        </div>
      ))}
    </dl>
  );
}

const databases: Record<string, string> = { sqlite: "SQLite", postgresql: "PostgreSQL" };
const objects: Record<string, string> = { folder: "data folder", s3: "S3" };
const mails: Record<string, string> = { folder: "files in the data folder", smtp: "SMTP" };
const signUps: Record<string, string> = { open: "everyone", invite: "invited people only", closed: "no one" };

function About() {
  const api = useApi();
  const about = useQuery(versionQuery);
  const mail = useAction(() => testMail(api), "Test email sent to your address");
  return (
    <Section
      title="Version"
      actions={
        <Button size="sm" busy={mail.isPending} onClick={() => mail.mutate(undefined)}>
          Send test email
        </Button>
      }
    >
      <Answer query={about} rows={1}>
        {(v) => (
          <Facts
            label="Version"
            rows={[
              ["Millrace", v.version],
              ["License", v.license],
              ["Started", <Time key="since" at={v.startedAt} />],
              ["Who can sign up", signUps[v.signUp] ?? v.signUp],
              ["Database", databases[v.database] ?? v.database],
              ["Files stored in", objects[v.objects] ?? v.objects],
              ["Email delivered to", mails[v.mail] ?? v.mail],
              ["Go", v.go],
            ]}
          />
        )}
      </Answer>
    </Section>
  );
}

const diskStates = { enough: "OK", low: "Low: no new tasks start", nearlyNone: "Critical: tasks are stopped" };

function Disk() {
  const disk = useQuery(diskQuery);
  return (
    <Section title="Disk and files" intro="The disk of the server that answered this request.">
      <Answer query={disk} rows={1}>
        {(d) => (
          <Facts
            label="Disk and files"
            rows={[
              ["Free", `${bytes(d.freeBytes)} of ${bytes(d.totalBytes)}`],
              [
                "Disk space",
                <Pill key="state" tone={d.state === "enough" ? "ok" : "danger"}>
                  {diskStates[d.state]}
                </Pill>,
              ],
              ["Team files", bytes(d.fileBytes)],
              ["Database", bytes(d.databaseBytes)],
              ["Pending deletion", `${d.pendingDeletes.toLocaleString("en")} objects`],
            ]}
          />
        )}
      </Answer>
    </Section>
  );
}

function Chores() {
  const chores = useQuery(choresQuery);
  return (
    <Section title="Background jobs" intro="The server's log says why a job failed.">
      <Answer query={chores}>
        {(list) =>
          list.length === 0 ? (
            <Empty icon={<Server aria-hidden />} title="No jobs have run yet">
              The first jobs run within a minute after the server starts.
            </Empty>
          ) : (
            <Table
              label="Background jobs"
              head={
                <>
                  <Th>Job</Th>
                  <Th>Last success</Th>
                  <Th className="max-sm:hidden">Duration</Th>
                  <Th>State</Th>
                </>
              }
            >
              {list.map((chore) => (
                <tr key={chore.name}>
                  <Td>{chore.name}</Td>
                  <Td>{chore.succeededAt ? <Time at={chore.succeededAt} /> : "never"}</Td>
                  <Td className="max-sm:hidden">{duration(chore.tookMs)}</Td>
                  <Td>
                    {chore.failedAt ? (
                      <Pill tone="danger">failed</Pill>
                    ) : chore.skipped > 0 ? (
                      <Pill tone="warn">{`${chore.skipped} skipped`}</Pill>
                    ) : (
                      <Pill tone="ok">OK</Pill>
                    )}
                  </Td>
                </tr>
              ))}
            </Table>
          )
        }
      </Answer>
    </Section>
  );
}

function Errors() {
  const errors = useQuery(errorsQuery);
  return (
    <Section
      title="Recent errors"
      intro="Requests that failed because of a server error. Search the host's log for the request ID to see why."
    >
      <Answer query={errors}>
        {(list) =>
          list.length === 0 ? (
            <Empty icon={<CircleCheck aria-hidden />} title="No errors">
              Requests that fail because of a server error appear here.
            </Empty>
          ) : (
            <Table
              label="Recent errors"
              head={
                <>
                  <Th>When</Th>
                  <Th>Request</Th>
                  <Th>Route</Th>
                  <Th className="max-sm:hidden">Host</Th>
                </>
              }
            >
              {list.map((error) => (
                <tr key={`${error.at} ${error.requestId}`}>
                  <Td className="whitespace-nowrap">
                    <Time at={error.at} />
                  </Td>
                  <Td className="font-mono text-[13px]">{error.requestId}</Td>
                  <Td>{error.route}</Td>
                  <Td className="max-sm:hidden">{error.host}</Td>
                </tr>
              ))}
            </Table>
          )
        }
      </Answer>
    </Section>
  );
}
