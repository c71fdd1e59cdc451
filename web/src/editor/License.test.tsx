import { QueryClientProvider } from "@tanstack/react-query";
import { fireEvent, render, screen } from "@testing-library/react";
import { afterEach, expect, test, vi } from "vitest";
import { TeamClient } from "../api/team.ts";
import { meQuery } from "../identity/queries.ts";
import { workflowQuery } from "../workflows/queries.ts";
import { License } from "./License.tsx";

afterEach(() => vi.unstubAllGlobals());

test("a license is saved as the server spells it, and one that it refuses is not", async () => {
  const sent: unknown[] = [];
  vi.stubGlobal("fetch", async (request: Request) => {
    const { license } = await request.json();
    sent.push([request.method, new URL(request.url).pathname, license]);
    if (license !== "mit")
      return Response.json({ success: false, error: { code: "invalid_request" } }, { status: 400 });
    return Response.json({ success: true, data: { id: "wf_1", license: "MIT" } });
  });
  const client = new TeamClient("team_1");
  client.setDefaultOptions({ queries: { staleTime: Number.POSITIVE_INFINITY } });
  client.setQueryData(meQuery.queryKey, { team: { role: "owner" } } as never);
  client.setQueryData(workflowQuery("wf_1").queryKey, { id: "wf_1", license: "" } as never);
  render(
    <QueryClientProvider client={client}>
      <License workflowId="wf_1" />
    </QueryClientProvider>,
  );
  const field = await screen.findByLabelText<HTMLInputElement>("SPDX identifier");
  for (const license of [" mit ", "mine"]) {
    fireEvent.change(field, { target: { value: license } });
    fireEvent.blur(field);
    await vi.waitFor(() => expect(field.value).toBe("MIT"));
  }
  expect(sent).toEqual([
    ["PUT", "/api/workflows/wf_1", "mit"],
    ["PUT", "/api/workflows/wf_1", "mine"],
  ]);
});
