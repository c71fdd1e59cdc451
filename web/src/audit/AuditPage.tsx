import { useInfiniteQuery, useMutation } from "@tanstack/react-query";
import { Download } from "lucide-react";
import { useState } from "react";
import { useApi } from "../api/team.ts";
import { useWhyNot } from "../identity/queries.ts";
import { Page } from "../page/Page.tsx";
import { Button } from "../ui/Button.tsx";
import { Notice } from "../ui/Notice.tsx";
import { AuditLog, everything, filterOf } from "./AuditLog.tsx";
import { auditQuery, downloadAudit } from "./queries.ts";

const subjects = {
  "": "All subjects",
  "session.": "Sign-ins",
  "member.": "Members",
  "invitation.": "Invitations",
  "token.": "Tokens",
  "service_account.": "Service accounts",
  "secret.": "Secrets",
  "share_link.": "Share links",
  "workflow.": "Workflows",
  "run.": "Runs",
  "file.": "Files",
  "topup.": "Top-ups",
  "team.": "Team",
  "operator.": "Operator",
};

/** AuditPage is what was done in the team, by whom and from where. */
export function AuditPage() {
  const api = useApi();
  const whyNot = useWhyNot()("manage members") && "Only admins and owners can read the audit log.";
  const [chosen, setChosen] = useState(everything);
  const filter = filterOf(chosen);
  const entries = useInfiniteQuery({ ...auditQuery(filter), enabled: whyNot === null });
  const download = useMutation({ mutationFn: (format: "csv" | "jsonl") => downloadAudit(api, filter, format) });
  return (
    <Page
      title="Audit log"
      intro="Who did what in this team, when and from where. Entries can't be edited; each contains the hash of the one before."
      actions={
        whyNot === null &&
        (["csv", "jsonl"] as const).map((format) => (
          <Button
            key={format}
            icon={<Download className="size-4" aria-hidden />}
            busy={download.isPending && download.variables === format}
            onClick={() => download.mutate(format)}
          >
            {format.toUpperCase()}
          </Button>
        ))
      }
    >
      {whyNot ? (
        <Notice>{whyNot}</Notice>
      ) : (
        <AuditLog
          entries={entries}
          subjects={subjects}
          chosen={chosen}
          onChoose={setChosen}
          empty="Actions in this team appear here."
        />
      )}
    </Page>
  );
}
