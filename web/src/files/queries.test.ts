import { afterEach, expect, test, vi } from "vitest";
import { TeamClient } from "../api/team.ts";
import { filesByKeyQuery } from "./queries.ts";

afterEach(() => vi.unstubAllGlobals());

test("files are asked for in addresses that proxies take, however long their names", async () => {
  const addresses: string[] = [];
  vi.stubGlobal("fetch", async ({ url }: Request) => {
    addresses.push(url);
    const rows = new URL(url).searchParams.getAll("key").map((key) => ({ key }));
    return Response.json({ success: true, data: rows, page: { hasMore: false } });
  });
  const keys = [..."ü".repeat(30)].map((letter, i) => `${letter.repeat(100)}${i}`);
  const found = await new TeamClient("team_1").fetchQuery(filesByKeyQuery(keys));
  expect([...found.keys()]).toEqual(keys);
  expect(Math.max(...addresses.map((address) => address.length))).toBeLessThan(7000);
  const short = Array.from({ length: 130 }, (_, i) => `k${i}`);
  addresses.length = 0;
  expect((await new TeamClient("team_1").fetchQuery(filesByKeyQuery(short))).size).toBe(130);
  expect(addresses.length).toBe(2);
});
