import { queryOptions, useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { Network } from "lucide-react";
import { useId, useState } from "react";
import { type Api, ask, type Schemas } from "../api/client.ts";
import { apiOf, useApi } from "../api/team.ts";
import { Answer } from "../page/Answer.tsx";
import { Section } from "../page/Page.tsx";
import { Button } from "../ui/Button.tsx";
import { Dialog } from "../ui/Dialog.tsx";
import { Empty } from "../ui/Empty.tsx";
import { Choice, Field, Input } from "../ui/Field.tsx";
import { Form } from "../ui/Form.tsx";
import { Table, Td, Th } from "../ui/Table.tsx";
import { useAction } from "./actions.ts";
import { teamsQuery } from "./queries.ts";

type Rule = Schemas["GroupRule"];

interface Mapping {
  rules: Rule[];
  etag: string;
}

const mappingQuery = queryOptions({
  queryKey: ["operator", "group mapping"],
  queryFn: async ({ client }): Promise<Mapping> => {
    const answer = apiOf(client).GET("/api/operator/group-mapping");
    const { rules } = await ask(answer);
    return { rules, etag: (await answer).response.headers.get("ETag") ?? "*" };
  },
});

/** setMapping replaces the rules, unless somebody else has changed them since they were read. */
const setMapping = (api: Api, rules: Rule[], etag: string) =>
  ask(api.PUT("/api/operator/group-mapping", { params: { header: { "If-Match": etag } }, body: { rules } }));

/** GroupMapping says which groups at a provider give which roles in teams. */
export function GroupMapping() {
  const api = useApi();
  const mapping = useQuery(mappingQuery);
  const teams = useInfiniteQuery(teamsQuery);
  const [adding, setAdding] = useState(false);
  const known = teams.data?.pages.flatMap((page) => page.rows) ?? [];
  const remove = useAction(
    (gone: Rule) =>
      setMapping(api, mapping.data?.rules.filter((rule) => rule !== gone) ?? [], mapping.data?.etag ?? "*"),
    "Rule removed",
  );
  return (
    <Section
      title="Groups and teams"
      intro="People in a group at your sign-in provider get a role in a team whenever they sign in, and lose it when they leave the group. Roles that people gave stay."
      actions={
        <Button size="sm" disabled={!mapping.data} onClick={() => setAdding(true)}>
          Add rule
        </Button>
      }
    >
      <Answer query={mapping} rows={1}>
        {({ rules, etag }) => (
          <>
            {rules.length === 0 ? (
              <Empty icon={<Network aria-hidden />} title="No rules yet">
                Without rules, people join teams by invitation.
              </Empty>
            ) : (
              <Table
                label="Groups and teams"
                head={
                  <>
                    <Th>Group</Th>
                    <Th>Team</Th>
                    <Th>Role</Th>
                    <Th>
                      <span className="sr-only">Actions</span>
                    </Th>
                  </>
                }
              >
                {rules.map((rule) => (
                  <tr key={`${rule.teamId} ${rule.group}`}>
                    <Td className="break-all">{rule.group}</Td>
                    <Td title={rule.teamId} className="break-all">
                      {known.find((team) => team.id === rule.teamId)?.name ?? rule.teamId}
                    </Td>
                    <Td>{rule.role}</Td>
                    <Td>
                      <Button
                        size="sm"
                        look="danger-quiet"
                        aria-label={`Remove the rule for ${rule.group}`}
                        busy={remove.isPending && remove.variables === rule}
                        onClick={() => remove.mutate(rule)}
                      >
                        Remove
                      </Button>
                    </Td>
                  </tr>
                ))}
              </Table>
            )}
            {adding && (
              <AddRule
                add={(rule) => setMapping(api, [...rules, rule], etag)}
                teams={known}
                onClose={() => setAdding(false)}
              />
            )}
          </>
        )}
      </Answer>
    </Section>
  );
}

const roles = { viewer: "Viewer", member: "Member", admin: "Admin", owner: "Owner" };

function AddRule({
  add,
  teams,
  onClose,
}: {
  add: (rule: Rule) => Promise<unknown>;
  teams: Schemas["OperatorTeam"][];
  onClose: () => void;
}) {
  const [group, setGroup] = useState("");
  const [teamId, setTeam] = useState("");
  const [role, setRole] = useState<Rule["role"]>("member");
  const list = useId();
  const save = useAction(() => add({ group, teamId: teamId.trim(), role }), "Rule added", onClose);
  return (
    <Dialog
      open
      onOpenChange={(open) => !open && onClose()}
      title="Add rule"
      description="It applies to each person from their next sign-in through a provider."
    >
      <Form onSubmit={() => save.mutate(undefined)}>
        <Field label="Group" hint="As the provider writes it, with capitals.">
          <Input required maxLength={255} value={group} onChange={(event) => setGroup(event.target.value)} />
        </Field>
        <Field label="Team ID" hint="Type a part of the team's name to find it.">
          <Input required list={list} value={teamId} onChange={(event) => setTeam(event.target.value)} />
        </Field>
        <datalist id={list}>
          {teams.map((team) => (
            <option key={team.id} value={team.id}>
              {team.name}
            </option>
          ))}
        </datalist>
        <Field label="Role">
          <Choice options={roles} value={role} onChange={setRole} />
        </Field>
        <Button type="submit" look="primary" busy={save.isPending}>
          Add rule
        </Button>
      </Form>
    </Dialog>
  );
}
