import { QueryClientProvider } from "@tanstack/react-query";
import { fireEvent, render, screen } from "@testing-library/react";
import { expect, test, vi } from "vitest";
import { TeamClient } from "../api/team.ts";
import { type Me, meQuery } from "../identity/queries.ts";
import { DropZone } from "../ui/DropZone.tsx";
import { Toasts } from "../ui/Toasts.tsx";
import { DropAnywhere } from "./DropAnywhere.tsx";

const overlay = () => screen.queryByText("Drop files or folders to upload them to Lab");

function show(beside: React.ReactNode) {
  const client = new TeamClient("team_1");
  client.setQueryData(meQuery.queryKey, { team: { id: "team_1", name: "Lab", role: "member" } } as Me);
  render(
    <QueryClientProvider client={client}>
      <DropAnywhere />
      {beside}
    </QueryClientProvider>,
  );
}

test("a drop on something that takes files is the end of dragging over the page", () => {
  const taken = vi.fn();
  show(<DropZone onFiles={taken}>Drop here</DropZone>);
  const zone = screen.getByRole("button", { name: "Drop here" });
  const dataTransfer = { types: ["Files"], files: [new File(["a"], "a.txt")] };
  fireEvent.dragEnter(zone, { dataTransfer });
  expect(overlay()).not.toBeNull();
  fireEvent.drop(zone, { dataTransfer });
  expect(taken).toHaveBeenCalledOnce();
  expect(overlay()).toBeNull();
});

test("a folder that cannot be read says why", async () => {
  show(<Toasts />);
  const readEntries = (_take: unknown, fail: (error: Error) => void) => fail(new Error("permission denied"));
  const folder = { name: "reads", fullPath: "/reads", isDirectory: true, createReader: () => ({ readEntries }) };
  const items = [{ kind: "file", webkitGetAsEntry: () => folder, getAsFile: () => null }];
  fireEvent.drop(document.body, { dataTransfer: { types: ["Files"], items, files: [] } });
  await screen.findByText("Can't read reads (permission denied); nothing was uploaded.");
});
