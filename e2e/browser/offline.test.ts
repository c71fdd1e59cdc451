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

/** unplug lets a page lose its connection, and find it again. Call it before the page is opened. */
async function unplug(page: Page): Promise<{ away: () => Promise<void>; back: () => Promise<void> }> {
  let away = false;
  const sockets = new Set<WebSocketRoute>();
  await page.routeWebSocket(/\/editor\//, (socket) => {
    if (away) return void socket.close();
    sockets.add(socket);
    socket.connectToServer();
  });
  return {
    away: async () => {
      away = true;
      await page.context().setOffline(true);
      for (const socket of sockets) await socket.close();
      sockets.clear();
    },
    back: async () => {
      away = false;
      await page.context().setOffline(false);
    },
  };
}

test("one of two people is offline: whatever both type, rename and apply as code survives", async () => {
  const ada = await harness.person("Ada Both");
  const before = example("word-count").definition;
  const remark = { id: "remark", type: "note", text: "To share.", position: { x: 0, y: 400 } };
  const silent = { id: "silent", name: "Silent", type: "task", position: { x: 400, y: 400 } };
  const made = await ada.api("POST", "/api/workflows", {
    ...example("word-count"),
    definition: { ...before, nodes: [...before.nodes, remark, silent] },
  });
  const { id } = made.body.data;
  await harness.verify(ada.email);
  expect((await ada.api("POST", "/api/team/invite", { email: "bo@example.org", role: "member" })).status).toBe(201);
  const bo = await harness.person("Bo", await harness.invitation("bo@example.org"));
  await bo.api("POST", `/auth/teams/${ada.team}/activate`);
  const connection = await unplug(bo.page);
  for (const { page } of [ada, bo]) {
    await page.goto(`${harness.url}/workflows/${id}`);
    await page.getByText("Saved", { exact: true }).waitFor();
  }
  const field = (page: Page) => page.locator(".cm-content").first();
  const type = async (page: Page, step: string, at: "Control+Home" | "Control+End", text: string) => {
    await node(page, step).click();
    await field(page).click();
    await page.keyboard.press(at);
    await page.keyboard.type(text);
  };
  const change = async (page: Page, from: string, to: string) => {
    await page.getByRole("tab", { name: "Code" }).click();
    const code = page.getByLabel("Definition", { exact: true });
    await code.click();
    await page.keyboard.press("Control+f");
    await page.getByRole("textbox", { name: "Find" }).fill(from);
    await page.getByRole("textbox", { name: "Replace" }).fill(to);
    await page.getByRole("button", { name: "replace all" }).click();
    await page.getByRole("button", { name: "Apply", exact: true }).click();
    await page.getByText("Applied to the canvas.").waitFor();
  };
  const note = async (page: Page, at: "Control+Home" | "Control+End", text: string) => {
    await node(page, "To share.").click();
    await page.getByLabel("Note", { exact: true }).press(at);
    await page.keyboard.type(text);
    await page.keyboard.press("Tab");
    await node(page, text.trim()).waitFor();
  };
  const setId = async (page: Page, step: string, to: string) => {
    await node(page, step).click();
    await page.getByLabel("Step ID").fill(to);
    await page.getByLabel("Step ID").press("Enter");
    await until("the step has the ID", async () => new URL(page.url()).searchParams.get("node") === to);
  };

  await connection.away();
  await bo.page.getByText("Offline: saved on this device").waitFor();
  await type(ada.page, "Add up", "Control+Home", "# ada typed\n");
  await type(ada.page, "Silent", "Control+End", "# ada began\n");
  await note(ada.page, "Control+Home", "Ada wrote. ");
  await ada.page.getByText("Saved", { exact: true }).waitFor();
  await setId(ada.page, "Add up", "ada_id");
  await change(ada.page, "Count one text", "Ada applied");
  await type(bo.page, "Add up", "Control+End", "# bo typed\n");
  await type(bo.page, "Count one text", "Control+Home", "# bo typed here, too\n");
  await type(bo.page, "Silent", "Control+End", "# bo began\n");
  await note(bo.page, "Control+End", " Bo wrote.");
  await setId(bo.page, "Count one text", "bo_id");
  await change(bo.page, "Words to show", "Bo applied");
  await rename(bo.page, "Add up", "Bo named");
  expect(JSON.stringify((await ada.api("GET", `/api/workflows/${id}`)).body)).not.toContain("bo typed");
  await connection.back();

  await until("the server has everything of both", async () => {
    const { definition, problems } = (await ada.api("GET", `/api/workflows/${id}`)).body.data;
    const step = (of: string) => definition.nodes.find((each: Json) => each.id === of);
    return (
      definition.nodes.length === 4 &&
      step("remark").text === "Ada wrote. To share. Bo wrote." &&
      ["# ada began\n# bo began\n", "# bo began\n# ada began\n"].includes(step("silent").command) &&
      step("ada_id")?.name === "Bo named" &&
      step("ada_id").command === `# ada typed\n${before.nodes[1].command}# bo typed\n` &&
      step("bo_id")?.name === "Ada applied" &&
      step("bo_id").command === `# bo typed here, too\n${before.nodes[0].command}` &&
      definition.edges[0].source === "bo_id" &&
      definition.edges[0].target === "ada_id" &&
      definition.parameters.top.title === "Bo applied" &&
      problems.length === 0
    );
  });
  for (const { page } of [ada, bo]) {
    await node(page, "Bo named").waitFor();
    await node(page, "Ada applied").waitFor();
    await node(page, "Ada wrote. To share. Bo wrote.").waitFor();
    await node(page, "Silent").click();
    await until("the command has the words of both", async () => {
      const text = await field(page).innerText();
      return text.includes("# ada began") && text.includes("# bo began");
    });
    await page.getByText("Saved", { exact: true }).waitFor();
  }
});
