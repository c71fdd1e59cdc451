import { expect, test } from "vitest";
import { type Action, may, whyNot } from "./access.ts";

test("who may do what is the server's own table", () => {
  const may4 = (action: Action) => (["owner", "admin", "member", "viewer"] as const).map((role) => may(role, action));
  expect(may4("start runs")).toEqual([true, true, true, false]);
  expect(may4("manage billing")).toEqual([true, true, false, false]);
  expect(may4("erase the team")).toEqual([true, false, false, false]);
});

test("a refusal says who may, and who one is", () => {
  expect(whyNot("viewer", "start runs")).toBe(
    "Only members, admins and owners can start runs. You are a viewer of this team.",
  );
  expect(whyNot("admin", "erase the team")).toBe("Only owners can erase the team. You are an admin of this team.");
  expect(whyNot("owner", "erase the team")).toBeNull();
});
