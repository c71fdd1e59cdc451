import { useInfiniteQuery } from "@tanstack/react-query";
import { useState } from "react";
import { AuditLog, everything, filterOf } from "../audit/AuditLog.tsx";
import { Section } from "../page/Page.tsx";
import { installationAuditQuery } from "./queries.ts";

const subjects = {
  "": "All subjects",
  "operator.account_": "Accounts",
  "operator.operator_": "Operators",
  "operator.group_mapping_": "Groups and teams",
  "operator.notice_": "Notices",
  "operator.maintenance_": "Maintenance mode",
  "operator.worker_": "Workers",
};

/** InstallationAudit is what was done in the installation and concerns no team. */
export function InstallationAudit() {
  const [chosen, setChosen] = useState(everything);
  const entries = useInfiniteQuery(installationAuditQuery(filterOf(chosen)));
  return (
    <Section
      title="Audit log of the installation"
      intro="What operators did here and on the command line of the server. What they do to a team is in the audit log of that team."
    >
      <AuditLog
        entries={entries}
        subjects={subjects}
        chosen={chosen}
        onChoose={setChosen}
        empty="Actions of operators appear here."
      />
    </Section>
  );
}
