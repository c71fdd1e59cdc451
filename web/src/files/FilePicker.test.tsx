import { QueryClientProvider } from "@tanstack/react-query";
import { fireEvent, render, screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { useState } from "react";
import { afterEach, expect, test, vi } from "vitest";
import { TeamClient } from "../api/team.ts";
import { Toasts } from "../ui/Toasts.tsx";
import { FilePicker } from "./FilePicker.tsx";

afterEach(() => vi.unstubAllGlobals());

function Picker() {
  const [value, setValue] = useState(["https://example.org/reads.fq"]);
  return <FilePicker label="Files for reads" multiple={false} value={value} onChange={setValue} />;
}

test("an upload that fails leaves what was chosen before", async () => {
  vi.stubGlobal("fetch", async (request: Request) =>
    request.method === "POST"
      ? Response.json({ success: false, code: "unsupported", error: "programs cannot be uploaded" }, { status: 415 })
      : Response.json({ success: true, data: [], page: { hasMore: false } }),
  );
  render(
    <QueryClientProvider client={new TeamClient("team_1")}>
      <Picker />
      <Toasts />
    </QueryClientProvider>,
  );
  await userEvent.click(screen.getByRole("button", { name: "Choose another file" }));
  const zone = await screen.findByRole("button", { name: "Drop files here to upload and use them" });
  fireEvent.drop(zone, { dataTransfer: { items: [], files: [new File(["#!"], "run.sh")] } });
  await screen.findByText("run.sh: Programs cannot be uploaded.");
  expect(screen.getByText("https://example.org/reads.fq")).toBeDefined();
});
