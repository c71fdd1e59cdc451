import { act, fireEvent, render, screen } from "@testing-library/react";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { DraftArea, DraftInput } from "./fields.tsx";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const type = (text: string) => fireEvent.change(screen.getByRole("textbox"), { target: { value: text } });
const wait = () => act(() => vi.advanceTimersByTime(5000));

test("a value is kept after a pause, a name when it is left", () => {
  const onKeep = vi.fn();
  const { rerender } = render(<DraftInput value="a" onKeep={onKeep} />);
  type("ab");
  wait();
  expect(onKeep).toHaveBeenCalledWith("ab");
  onKeep.mockClear();
  rerender(<DraftInput value="a" onKeep={onKeep} whole />);
  type("abc");
  wait();
  expect(onKeep).not.toHaveBeenCalled();
  fireEvent.blur(screen.getByRole("textbox"));
  expect(onKeep).toHaveBeenCalledWith("abc");
});

test("what is refused stays to be put right, with the reason, until Escape", () => {
  const onKeep = vi.fn();
  render(<DraftInput value="1" onKeep={onKeep} refuse={(text) => (text === "x" ? "Not a number." : null)} />);
  type("x");
  wait();
  fireEvent.blur(screen.getByRole("textbox"));
  expect(screen.getByRole<HTMLInputElement>("textbox").value).toBe("x");
  screen.getByText("Not a number.");
  expect(onKeep).not.toHaveBeenCalled();
  fireEvent.keyDown(screen.getByRole("textbox"), { key: "Escape" });
  expect(screen.getByRole<HTMLInputElement>("textbox").value).toBe("1");
});

test("what a colleague writes into a focused field is not reverted", () => {
  const onKeep = vi.fn();
  const { rerender } = render(<DraftInput value="a" onKeep={onKeep} />);
  type("ab");
  wait();
  expect(onKeep).toHaveBeenCalledWith("ab");
  rerender(<DraftInput value="ab" onKeep={onKeep} />);
  onKeep.mockClear();
  rerender(<DraftInput value="theirs" onKeep={onKeep} />);
  expect(screen.getByRole<HTMLInputElement>("textbox").value).toBe("theirs");
  fireEvent.blur(screen.getByRole("textbox"));
  wait();
  expect(onKeep).not.toHaveBeenCalled();
});

test("a text has what a colleague wrote while it was typed into", () => {
  const onKeep = vi.fn();
  const { rerender } = render(<DraftArea value={"one\ntwo\n"} onKeep={onKeep} />);
  type("one\ntwo\nmine\n");
  rerender(<DraftArea value={"theirs\none\ntwo\n"} onKeep={onKeep} />);
  wait();
  expect(onKeep).toHaveBeenCalledWith("theirs\none\ntwo\nmine\n");
});

test("a draft is shown until it has been kept", async () => {
  let kept = () => {};
  const onKeep = () =>
    new Promise<void>((resolve) => {
      kept = resolve;
    });
  const { rerender } = render(<DraftInput value="old" onKeep={onKeep} whole />);
  const value = () => screen.getByRole<HTMLInputElement>("textbox").value;
  type("new");
  fireEvent.blur(screen.getByRole("textbox"));
  expect(value()).toBe("new");
  await act(async () => kept());
  rerender(<DraftInput value="new" onKeep={onKeep} whole />);
  expect(value()).toBe("new");
  rerender(<DraftInput value="theirs" onKeep={onKeep} whole />);
  expect(value()).toBe("theirs");
});
