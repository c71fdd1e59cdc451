// A real server and a real browser, made for one test file and thrown away.
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import { type Browser, type BrowserContext, chromium, type Page } from "playwright-core";
import { expect } from "vitest";

const root = new URL("../../", import.meta.url).pathname;
/** pictures is the folder for pictures of pages; most test runs take none. */
const pictures = process.env.MILLRACE_TEST_PICTURES;
const axeSource = readFileSync(createRequire(join(root, "web/package.json")).resolve("axe-core/axe.min.js"), "utf8");

export interface Person {
  context: BrowserContext;
  page: Page;
  email: string;
  team: string;
  /** api calls the server as this person, beside the browser. */
  api: (method: string, path: string, body?: unknown) => Promise<{ status: number; body: Json }>;
}

// biome-ignore lint/suspicious/noExplicitAny: what a test reads of an answer, it knows
export type Json = any;

/** wholeChromium is the browser that people have, with its PDF viewer. */
export const wholeChromium = process.env.CHROMIUM ?? "/usr/bin/chromium";

// The same engine without what draws windows, in half the time.
const withoutWindows = process.env.CHROMIUM ?? "/usr/bin/chromium-headless-shell";

/** Harness is a server with an address and a browser to visit it. */
export class Harness {
  private constructor(
    readonly url: string,
    readonly data: string,
    private server: ChildProcess,
    readonly browser: Browser,
  ) {}

  /** open starts bin/millrace on a free port, with a data folder of its own. */
  static async open(...flags: string[]): Promise<Harness> {
    return Harness.openIn(withoutWindows, ...flags);
  }

  /** openIn does so for a browser that is named. */
  static async openIn(executablePath: string, ...flags: string[]): Promise<Harness> {
    const data = mkdtempSync(join(tmpdir(), "millrace-browser-"));
    const server = serve("127.0.0.1:0", data, flags);
    return new Harness(await address(server), data, server, await launch(executablePath));
  }

  /** demo starts scripts/demo, and returns what it prints. */
  static async demo(): Promise<{ harness: Harness; story: string }> {
    const data = mkdtempSync(join(tmpdir(), "millrace-browser-"));
    const script = spawn(join(root, "scripts/demo"), ["--listen", "127.0.0.1:0"], {
      env: { ...process.env, TMPDIR: data },
      stdio: ["ignore", "pipe", "pipe"],
    });
    const story = await printed(script, /Ctrl-C ends/);
    const url = /Open (\S+)/.exec(story)?.[1] ?? "";
    return { harness: new Harness(url, data, script, await launch(withoutWindows)), story };
  }

  /** down ends the server without warning, as a crash does. */
  async down(): Promise<void> {
    await this.end("SIGKILL");
  }

  /** up starts it again, on the same data and under the same address. */
  async up(): Promise<void> {
    if (this.running()) return;
    this.server = serve(new URL(this.url).host, this.data, []);
    await address(this.server);
  }

  private running(): boolean {
    return this.server.exitCode === null && this.server.signalCode === null;
  }

  private async end(signal: "SIGTERM" | "SIGKILL"): Promise<void> {
    if (!this.running()) return;
    const gone = new Promise((resolve) => this.server.once("exit", resolve));
    this.server.kill(signal);
    await gone;
  }

  /** stop ends the server as Ctrl-C and service managers do. */
  async stop(): Promise<void> {
    await this.end("SIGTERM");
  }

  async close(): Promise<void> {
    await this.browser.close();
    await this.stop();
    rmSync(this.data, { recursive: true, force: true });
  }

  /** shell runs a command of somebody's terminal, who has bin/millrace at hand. */
  shell(command: string, env: Record<string, string>): Promise<{ stdout: string }> {
    const path = `${join(root, "bin")}:${process.env.PATH}`;
    return promisify(execFile)("sh", ["-ec", command], {
      env: { HOME: this.data, PATH: path, MILLRACE_SERVER: this.url, ...env },
    });
  }

  /** invitation waits for the letter to an address, and takes the invitation out of it. */
  invitation(email: string): Promise<string> {
    return this.letter(email, /invitations\/([\w-]+)/);
  }

  /** verify follows the link in the letter to somebody who signed up: only then do they send mail themselves. */
  async verify(email: string): Promise<void> {
    const token = await this.letter(email, /verify\/([\w-]+)/);
    const response = await fetch(`${this.url}/auth/verify`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ token }),
    });
    if (response.status !== 200) throw new Error(`verify: ${await response.text()}`);
  }

  private letter(email: string, link: RegExp): Promise<string> {
    const folder = join(this.data, "mail");
    return until(`a letter to ${email}`, async () => {
      for (const file of readdirSync(folder)) {
        const text = readFileSync(join(folder, file), "utf8")
          .replaceAll(/=\r?\n/g, "")
          .replaceAll("=3D", "=");
        const found = text.includes(email) && link.exec(text)?.[1];
        if (found) return found;
      }
      return null;
    });
  }

  /** visitor is a browser without a session. Whatever it complains about fails the test that asks. */
  async visitor(proxy?: string): Promise<{ context: BrowserContext; page: Page }> {
    const context = await this.browser.newContext({
      viewport: { width: 1440, height: 900 },
      colorScheme: "light",
      ...(proxy && { proxy: { server: proxy } }),
    });
    context.setDefaultTimeout(90_000); // a busy machine is slow, not broken
    const page = await context.newPage();
    watch(page, this.url);
    return { context, page };
  }

  /** person signs somebody up, and gives the browser their session. Its requests go by the proxy, if there is one. */
  async person(name: string, invitation?: string, proxy?: string): Promise<Person> {
    const email = `${name.toLowerCase().replaceAll(/[^a-z]/g, ".")}@example.org`;
    const response = await fetch(`${this.url}/auth/sign-up`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ name, email, password: "correct horse battery", ...(invitation && { invitation }) }),
    });
    const answer = (await response.json()) as Json;
    if (response.status !== 201) throw new Error(`sign-up: ${JSON.stringify(answer)}`);
    const secret = /millrace_session=([^;]+)/.exec(response.headers.get("set-cookie") ?? "")?.[1] ?? "";
    const { context, page } = await this.visitor(proxy);
    await context.addCookies([
      { name: "millrace_session", value: secret, url: this.url, httpOnly: true, sameSite: "Lax" },
    ]);
    const api = async (method: string, path: string, body?: unknown) => {
      const reply = await fetch(this.url + path, {
        method,
        headers: {
          Cookie: `millrace_session=${secret}`,
          ...(body !== undefined && { "Content-Type": "application/json" }),
        },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      });
      const text = await reply.text();
      return { status: reply.status, body: text ? (JSON.parse(text) as Json) : null };
    };
    return { context, page, email, team: answer.data.team.id, api };
  }
}

/** example is a workflow of the repository, as it is sent. */
export function example(name: string): Json {
  return JSON.parse(readFileSync(join(root, "examples", name, "workflow.json"), "utf8"));
}

/** until waits for a condition outside of the browser. */
export async function until<T>(what: string, ask: () => Promise<T | null | undefined | false>): Promise<T> {
  const deadline = Date.now() + 90_000;
  while (Date.now() < deadline) {
    const got = await ask();
    if (got) return got;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error(`never happened: ${what}`);
}

function launch(executablePath: string): Promise<Browser> {
  return chromium.launch({
    executablePath,
    args: [
      "--headless",
      "--no-sandbox",
      "--disable-gpu",
      "--disable-quic",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
    ],
  });
}

function serve(listen: string, data: string, flags: string[]): ChildProcess {
  return spawn(join(root, "bin/millrace"), ["serve", "--listen", listen, "--data", data, ...flags], {
    stdio: ["ignore", "pipe", "pipe"],
  });
}

async function address(server: ChildProcess): Promise<string> {
  return /is running at (\S+)/.exec(await printed(server, /is running at/))?.[1] ?? "";
}

/** printed is what a program has printed when it prints the last line that is wanted. */
function printed(program: ChildProcess, last: RegExp): Promise<string> {
  return new Promise((resolve, reject) => {
    const said: string[] = [];
    for (const stream of [program.stdout, program.stderr]) {
      if (!stream) continue;
      createInterface({ input: stream }).on("line", (line) => {
        said.push(line);
        if (last.test(line)) resolve(said.join("\n"));
      });
    }
    program.once("exit", (code) => reject(new Error(`the server ended with ${code}: ${said.join("\n")}`)));
    program.once("error", reject);
  });
}

const complaints = new WeakMap<Page, string[]>();

// Chromium logs every refused request by itself; those the app has to show,
// and the tests look at that.
const refusals = /Failed to load resource: the server responded with a status of/;

function watch(page: Page, origin: string): void {
  const list: string[] = [];
  complaints.set(page, list);
  page.on("console", (message) => {
    if (message.type() === "error" && !refusals.test(message.text())) list.push(message.text());
  });
  page.on("pageerror", (error) => list.push(String(error)));
  page.on("request", (request) => {
    const url = request.url();
    if (!url.startsWith(origin) && !/^(data|blob|about):/.test(url)) list.push(`a request left for ${url}`);
  });
}

/** calm fails when the page has logged an error, thrown, or talked to strangers. */
export function calm(page: Page): void {
  expect(complaints.get(page) ?? []).toEqual([]);
}

/** accessible fails on every serious finding of axe. */
export async function accessible(page: Page, where: string): Promise<void> {
  if (!(await page.evaluate(() => "axe" in globalThis))) await page.evaluate(axeSource);
  const found = await page.evaluate(
    async (options) => {
      const { axe } = globalThis as unknown as { axe: { run: (options: object) => Promise<{ violations: Json[] }> } };
      const { violations } = await axe.run(options);
      return violations
        .filter((each) => each.impact === "serious" || each.impact === "critical")
        .map(
          (each) => `${each.id}: ${each.nodes.map((node: Json) => `${node.html} ${node.failureSummary}`).join(" | ")}`,
        );
    },
    { resultTypes: ["violations"] },
  );
  expect(found, `axe on ${where}`).toEqual([]);
}

// Each width and each theme once; make test-all has all four combinations.
const looks = [
  { theme: "light", width: 1440 },
  { theme: "dark", width: 390 },
  ...(process.env.MILLRACE_TEST_ALL
    ? [{ theme: "dark", width: 1440 } as const, { theme: "light", width: 390 } as const]
    : []),
] as const;

/** look has axe judge the page at both widths and in both themes, and takes its picture where somebody wants to see it. */
export async function look(page: Page, name: string): Promise<void> {
  await colorsChange(page, "at once");
  for (const { theme, width } of looks) {
    await page.emulateMedia({ colorScheme: theme, reducedMotion: "reduce" });
    await page.setViewportSize({ width, height: width === 390 ? 844 : 900 });
    await drawn(page);
    await accessible(page, `${name}, ${theme}, ${width}`);
    if (pictures)
      await page.screenshot({ path: join(pictures, `${name}-${theme}-${width}.png`), animations: "disabled" });
  }
  await page.emulateMedia({ colorScheme: "light" });
  await page.setViewportSize({ width: 1440, height: 900 });
  await drawn(page);
  await colorsChange(page, "in time");
}

// colorsChange says how a page goes to another theme: drawing what lies between takes
// longer than judging what comes of it.
function colorsChange(page: Page, how: "at once" | "in time"): Promise<void> {
  return page.evaluate((atOnce) => {
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(".at-once *, .at-once ::before, .at-once ::after { transition: none !important }");
    if (atOnce) document.adoptedStyleSheets.push(sheet);
    document.documentElement.classList.toggle("at-once", atOnce);
  }, how === "at once");
}

// drawn waits for what is drawn at the new size, and for what it makes move.
function drawn(page: Page): Promise<void> {
  return page.evaluate(async () => {
    const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));
    for (let still = 0; still < 3; ) {
      await frame();
      still = document.getAnimations().some((each) => each.playState === "running") ? 0 : still + 1;
    }
  });
}
