import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useId } from "react";
import { ask } from "../api/client.ts";
import { useApi } from "../api/team.ts";
import { useWhyNot } from "../identity/queries.ts";
import { workflowQuery } from "../workflows/queries.ts";
import { DraftInput, Small } from "./fields.tsx";

/** Those that people choose most often; the server takes every identifier of the list. */
const usual = ["Apache-2.0", "BSD-3-Clause", "CC-BY-4.0", "CC0-1.0", "GPL-3.0-or-later", "MIT"];

/** License says under which license others may use the workflow and what its runs make. */
export function License({ workflowId }: { workflowId: string }) {
  const api = useApi();
  const client = useQueryClient();
  const workflow = useQuery(workflowQuery(workflowId)).data;
  const locked = useWhyNot()("edit workflows") !== null;
  const list = useId();
  const change = useMutation({
    mutationFn: (license: string) =>
      ask(api.PUT("/api/workflows/{id}", { params: { path: { id: workflowId } }, body: { license } })),
    onSuccess: (fresh) => client.setQueryData(workflowQuery(workflowId).queryKey, fresh),
  });
  return (
    <section className="space-y-2">
      <h3 className="text-sm">License</h3>
      <p className="text-[13px] text-muted">
        Under which others may use the workflow and what its runs make. Exports and RO-Crates state it.
      </p>
      <Small label="SPDX identifier">
        <DraftInput
          whole
          disabled={locked || !workflow}
          list={list}
          placeholder="No license"
          maxLength={100}
          value={workflow?.license ?? ""}
          onKeep={(license) =>
            change.mutateAsync(license.trim()).then(
              () => {},
              () => {}, // a message says so
            )
          }
        />
      </Small>
      <datalist id={list}>
        {usual.map((id) => (
          <option key={id} value={id} />
        ))}
      </datalist>
    </section>
  );
}
