import { render, screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, test, vi } from "vitest";
import { Button } from "./Button.tsx";
import { Copy } from "./Copy.tsx";
import { ConfirmDialog } from "./Dialog.tsx";
import { Field, Input } from "./Field.tsx";
import { Markdown } from "./Markdown.tsx";
import { Toasts } from "./Toasts.tsx";
import { toast } from "./toast.ts";

const show = (element: React.ReactNode) => render(element);

test("a button that refuses can be reached, and says why", async () => {
  const clicked = vi.fn();
  show(
    <Button disabledReason="Only owners can do this." onClick={clicked}>
      Erase
    </Button>,
  );
  await userEvent.tab();
  expect(document.activeElement).toBe(screen.getByRole("button", { name: "Erase" }));
  expect((await screen.findByRole("tooltip")).textContent).toContain("Only owners can do this.");
  await userEvent.click(screen.getByRole("button", { name: "Erase" }));
  expect(clicked).not.toHaveBeenCalled();
});

test("a form is not sent by a button that refuses", async () => {
  const sent = vi.fn((event: React.FormEvent) => event.preventDefault());
  show(
    <form onSubmit={sent}>
      <Button type="submit" busy>
        Send
      </Button>
    </form>,
  );
  await userEvent.click(screen.getByRole("button", { name: "Send" }));
  expect(sent).not.toHaveBeenCalled();
});

test("what cannot be taken back wants its words typed exactly", async () => {
  const confirmed = vi.fn();
  show(
    <ConfirmDialog
      open
      onOpenChange={() => {}}
      title="Erase?"
      action="Erase everything"
      phrase="team_1"
      onConfirm={confirmed}
    >
      Gone for good.
    </ConfirmDialog>,
  );
  const field = await screen.findByLabelText("Type team_1 to confirm");
  const action = screen.getByRole("button", { name: "Erase everything" });
  await userEvent.type(field, "team_");
  await userEvent.click(action);
  expect(confirmed).not.toHaveBeenCalled();
  await userEvent.type(field, "1");
  await userEvent.click(action);
  expect(confirmed).toHaveBeenCalledOnce();
});

test("a field's error belongs to its control", () => {
  show(
    <Field label="Name" hint="Anything" error="That name is taken">
      <Input />
    </Field>,
  );
  const control = screen.getByLabelText("Name");
  expect(control.getAttribute("aria-invalid")).toBe("true");
  expect(document.getElementById(control.getAttribute("aria-describedby") ?? "")?.textContent).toBe(
    "That name is taken",
  );
});

test("a toast is read out, and its action taken once", async () => {
  const undone = vi.fn();
  show(<Toasts />);
  toast.ok("Deleted a.txt", { action: { label: "Undo", run: undone } });
  await userEvent.click(await screen.findByRole("button", { name: "Undo" }));
  expect(undone).toHaveBeenCalledOnce();
  expect(screen.queryByText("Deleted a.txt")).toBeNull();
});

test("what a model writes never becomes HTML", () => {
  const { container } = show(<Markdown source={'<img src=x onerror="alert(1)"> **bold** [x](javascript:alert(1))'} />);
  expect(container.querySelector("img")).toBeNull();
  expect(container.querySelector("a")).toBeNull();
  expect(container.querySelector("strong")?.textContent).toBe("bold");
});

test("a button says that it copied only once the clipboard has the text", async () => {
  const user = userEvent.setup();
  const writeText = vi
    .spyOn(navigator.clipboard, "writeText")
    .mockRejectedValueOnce(new DOMException("", "NotAllowedError"));
  show(
    <>
      <Copy text="abc" words="Copy codes" />
      <Toasts />
    </>,
  );
  await user.click(screen.getByRole("button", { name: "Copy codes" }));
  await screen.findByText("The browser doesn't let this page use the clipboard");
  expect(screen.queryByText("Copied")).toBeNull();
  writeText.mockResolvedValueOnce();
  await user.click(screen.getByRole("button", { name: "Copy codes" }));
  await screen.findByRole("button", { name: "Copied" });
});
