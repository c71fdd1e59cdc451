import { useMutation, useQueryClient } from "@tanstack/react-query";
import { FileText } from "lucide-react";
import { useState } from "react";
import type { Schemas } from "../api/client.ts";
import { useApi } from "../api/team.ts";
import { Problem } from "../page/Problem.tsx";
import { Button } from "../ui/Button.tsx";
import { Copy } from "../ui/Copy.tsx";
import { Dialog } from "../ui/Dialog.tsx";
import { DropZone } from "../ui/DropZone.tsx";
import { Choice, Field, Textarea } from "../ui/Field.tsx";
import { Form } from "../ui/Form.tsx";
import { plural } from "../ui/format.ts";
import { Pill } from "../ui/Pill.tsx";
import { Table, Td, Th } from "../ui/Table.tsx";
import { type InvitedRole, inviteList } from "./members.ts";
import { useMe, useMissing } from "./queries.ts";

type Result = Schemas["InvitationResult"];

interface OpenProps {
  open: boolean;
  onOpenChange: (open: boolean) => void;
}

/** InviteListDialog invites everybody of a list, and shows what became of each line. */
export function InviteListDialog({ open, onOpenChange }: OpenProps) {
  const api = useApi();
  const client = useQueryClient();
  const [list, setList] = useState("");
  const [role, setRole] = useState<InvitedRole>("member");
  const send = useMutation({
    mutationFn: () => inviteList(api, list, role),
    onSettled: () => client.invalidateQueries({ queryKey: ["members"] }),
    meta: { shown: true },
  });
  const read = useMutation({ mutationFn: readList, onSuccess: setList, meta: { shown: true } });
  const close = (stays: boolean) => {
    if (!stays) {
      setList("");
      send.reset();
      read.reset();
    }
    onOpenChange(stays);
  };
  if (send.data) return <Results list={send.data.results} open={open} onOpenChange={close} />;
  return (
    <Dialog
      open={open}
      onOpenChange={close}
      title="Invite several"
      description="Paste email addresses, or choose a CSV file. At most 500 at a time."
    >
      <Form onSubmit={() => send.mutate()}>
        <Field
          label="Email addresses"
          hint="One or several a line. A line with a role, such as “grace@example.org, admin”, has that role."
        >
          <Textarea required rows={6} value={list} onChange={(event) => setList(event.target.value)} />
        </Field>
        <DropZone
          accept=".csv,.tsv,.txt,text/csv,text/plain"
          multiple={false}
          busy={read.isPending}
          icon={<FileText />}
          onFiles={([file]) => file && read.mutate(file)}
        >
          Drop a CSV file here, or choose one
        </DropZone>
        {read.error && <Problem title="Couldn't read the file" error={read.error} />}
        <Field label="Role" hint="For lines without a role.">
          <Choice options={{ viewer: "Viewer", member: "Member", admin: "Admin" }} value={role} onChange={setRole} />
        </Field>
        {send.error && <Problem title="Couldn't invite" error={send.error} />}
        <Button type="submit" look="primary" busy={send.isPending} disabled={list.trim() === ""}>
          Invite
        </Button>
      </Form>
    </Dialog>
  );
}

// Far more than 500 addresses take.
const mostBytes = 500_000;

async function readList(file: File): Promise<string> {
  if (file.size > mostBytes) throw new Error("The file is too large for a list of 500 addresses");
  return file.text();
}

const words: Record<Result["result"], string> = {
  invited: "invited",
  already_member: "already a member",
  already_invited: "already invited",
  wrong: "not invited",
  limited: "not invited yet",
};
const tones = {
  invited: "ok",
  already_member: "neutral",
  already_invited: "neutral",
  wrong: "danger",
  limited: "warn",
} as const;

function Results({ list, open, onOpenChange }: { list: Result[] } & OpenProps) {
  const noMail = useMissing("mail");
  const sends = useMe().emailVerified && !noMail;
  const invited = list.filter((each) => each.result === "invited");
  const links = invited.map((each) => `${each.email}\t${each.invitation?.link}`);
  return (
    <Dialog
      open={open}
      onOpenChange={onOpenChange}
      wide
      title={`Invited ${plural(invited.length, "person", "people")}`}
      description={
        invited.length === 0
          ? "Nobody was invited."
          : sends
            ? "They get an email with a link to join. Emails are sent a few at a time."
            : `No email is sent: ${noMail ? "this server sends none" : "confirm your own email address first"}. Send them the links; they're shown only once.`
      }
      footer={
        <>
          {links.length > 0 && <Copy text={links.join("\n")} words="Copy all links" />}
          <Button look="primary" onClick={() => onOpenChange(false)}>
            Done
          </Button>
        </>
      }
    >
      <Table
        label="Results"
        head={
          <>
            <Th>Line</Th>
            <Th>Email</Th>
            <Th className="max-sm:hidden">Role</Th>
            <Th>Result</Th>
          </>
        }
      >
        {list.map((each) => (
          <tr key={`${each.line} ${each.email}`}>
            <Td>{each.line}</Td>
            <Td className="wrap-anywhere">{each.email}</Td>
            <Td className="max-sm:hidden">{each.role}</Td>
            <Td>
              <Pill tone={tones[each.result]}>{words[each.result]}</Pill>
              {(each.result === "wrong" || each.result === "limited") && (
                <span className="block text-[13px] text-muted">{each.message}</span>
              )}
            </Td>
          </tr>
        ))}
      </Table>
    </Dialog>
  );
}
