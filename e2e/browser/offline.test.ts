// The server goes away while somebody edits. What they did is there when it is
// back, whatever became of the page. Chromium logs each request that finds no
// server, so these tests do not ask for a quiet console.
import type { Page, WebSocketRoute } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { example, Harness, type Json, type Person, until } from "./harness.ts";

let harness: Harness;
beforeAll(async () => {
  harness = await Harness.open();
});
afterEach(() => harness.up());
afterAll(() => harness?.close());

const node = (page: Page, name: string) => page.locator(".react-flow__node", { hasText: name });

async function open(person: Person): Promise<string> {
  const made = await person.api("POST", "/api/workflows", example("word-count"));
  expect(made.status).toBe(201);
  const { id } = made.body.data;
  await person.page.goto(`${harness.url}/workflows/${id}`);
  await person.page.getByText("Saved", { exact: true }).waitFor();
  return id;
}

async function rename(page: Page, from: string, to: string): Promise<void> {
  await node(page, from).click();
  await page.getByLabel("Name", { exact: true }).fill(to);
  await page.getByLabel("Name", { exact: true }).press("Enter");
  await node(page, to).waitFor();
}

/** awayRename takes the server away, renames a step, and waits until that is kept. */
async function awayRename(page: Page, to: string): Promise<void> {
  await harness.down();
  await page.getByText("Offline: saved on this device").waitFor();
  await rename(page, "Add up", to);
  await until("the edit is kept", async () => (await kept(page)) > 0);
}

/** kept counts what the browser's database holds. */
function kept(page: Page): Promise<number> {
  return page.evaluate(
    () =>
      new Promise<number>((resolve) => {
        const request = indexedDB.open("millrace", 1);
        request.onsuccess = () => {
          const all = request.result.transaction("unsaved").objectStore("unsaved").count();
          all.onsuccess = () => {
            request.result.close();
            resolve(all.result);
          };
        };
        request.onerror = () => resolve(0);
      }),
  );
}

async function names(person: Person, id: string): Promise<string[]> {
  const { body } = await person.api("GET", `/api/workflows/${id}`);
  return body.data.definition.nodes.map((each: Json) => each.name);
}

test("the bar that says that the server is away leaves the whole editor on screen", async () => {
  const person = await harness.person("Bar Above");
  const { page } = person;
  await open(person);
  await harness.down();
  await page.getByText("Can't reach the server; reconnecting.").waitFor();
  for (const [width, height] of [
    [1440, 900],
    [390, 844],
  ] as const) {
    await page.setViewportSize({ width, height });
    await until(`the zoom buttons are on screen at ${width}`, async () => {
      const box = await page.getByRole("button", { name: "Zoom out" }).boundingBox();
      return box !== null && box.y + box.height <= height;
    });
    expect(await page.evaluate(() => document.documentElement.scrollHeight)).toBe(height);
  }
});

test("nothing runs before the server has what was edited", async () => {
  const ada = await harness.person("Ada Waits");
  const { page } = ada;
  // Only the live connection is lost: a run could start, of what the server has.
  let away = false;
  const sockets = new Set<WebSocketRoute>();
  await page.routeWebSocket(/\/editor\//, async (socket) => {
    if (away) return socket.close();
    sockets.add(socket);
    socket.connectToServer();
  });
  await open(ada);
  away = true;
  for (const socket of sockets) await socket.close();
  await page.getByText("Offline: saved on this device").waitFor();
  await rename(page, "Add up", "Not there yet");
  await page.getByRole("button", { name: "Run", exact: true }).click();
  await page.getByText("Can't run yet").waitFor();
  await page.getByText("Your changes are saved on this device").waitFor();
  expect(await page.getByRole("dialog").count()).toBe(0);
  away = false;
  await page.getByText("Saved", { exact: true }).waitFor();
  await page.getByRole("button", { name: "Run", exact: true }).click();
  await page.getByRole("dialog", { name: "Run" }).waitFor();
});

test("a part of the editor that was not sent any more comes when the server is back", async () => {
  const ada = await harness.person("Ada Early");
  const { page } = ada;
  let away = true;
  await page.route(/CommandEditor|api\/health/, (route) => (away ? route.abort() : route.continue()));
  await open(ada);
  await rename(page, "Add up", "Before the command");
  away = false;
  await page.getByRole("region", { name: "Command" }).getByRole("textbox").waitFor();
  await node(page, "Before the command").waitFor();
});

test("an edit made offline survives leaving the page", async () => {
  const ada = await harness.person("Ada Away");
  const { page } = ada;
  const id = await open(ada);
  await awayRename(page, "Renamed away");
  await page.getByRole("link", { name: "Runs", exact: true }).click();
  await page.waitForURL(/\/runs$/);
  await harness.up();
  await page.getByRole("link", { name: "Workflows", exact: true }).first().click();
  await page.getByRole("link", { name: "Count words" }).first().click();
  await node(page, "Renamed away").waitFor();
  await until("the server has it", async () => (await names(ada, id)).includes("Renamed away"));
  await page.getByText("Saved", { exact: true }).waitFor();
  await until("nothing is kept any more", async () => (await kept(page)) === 0);
});

test("an edit made offline survives a reload, and merges with what others did", async () => {
  const ada = await harness.person("Ada Reload");
  const { page } = ada;
  const id = await open(ada);
  await awayRename(page, "Mine");
  // Away from the editor's page, so that nothing of it is left in memory.
  await page.goto("about:blank");
  await harness.up();
  const theirs = (await ada.api("GET", `/api/workflows/${id}`)).body.data.definition;
  theirs.nodes[0].name = "Theirs";
  expect((await ada.api("PUT", `/api/workflows/${id}`, { definition: theirs })).status).toBe(200);
  await page.goto(`${harness.url}/workflows/${id}`);
  await node(page, "Mine").waitFor();
  await node(page, "Theirs").waitFor();
  await until("the server has both", async () => {
    const list = await names(ada, id);
    return list.includes("Mine") && list.includes("Theirs");
  });
});

test("an edit made offline survives a closed tab", async () => {
  const ada = await harness.person("Ada Closed");
  const id = await open(ada);
  await awayRename(ada.page, "After the tab");
  await ada.page.close();
  await harness.up();
  const page = await ada.context.newPage();
  await page.goto(`${harness.url}/workflows/${id}`);
  await node(page, "After the tab").waitFor();
  await until("the server has it", async () => (await names(ada, id)).includes("After the tab"));
});

test("one is told of edits to a workflow that is gone", async () => {
  const ada = await harness.person("Ada Gone");
  const { page } = ada;
  const id = await open(ada);
  await awayRename(page, "For nobody");
  await page.goto("about:blank");
  await harness.up();
  expect((await ada.api("DELETE", `/api/workflows/${id}`)).status).toBe(200);
  await page.goto(`${harness.url}/workflows/${id}`);
  const notice = page.getByText("Changes you made offline aren't saved");
  await notice.waitFor();
  const [file] = await Promise.all([
    page.waitForEvent("download"),
    page.getByRole("button", { name: "Download" }).click(),
  ]);
  expect(file.suggestedFilename()).toContain("with my changes.json");
  await page.getByRole("button", { name: "Discard" }).click();
  await notice.waitFor({ state: "detached" });
  expect(await kept(page)).toBe(0);
});
