// A repository on this machine, served as Git itself does.
import { execFileSync, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

const env = {
  PATH: process.env.PATH ?? "",
  GIT_CONFIG_NOSYSTEM: "1",
  GIT_CONFIG_GLOBAL: "/dev/null",
  GIT_AUTHOR_NAME: "Ada",
  GIT_AUTHOR_EMAIL: "ada@example.org",
  GIT_COMMITTER_NAME: "Ada",
  GIT_COMMITTER_EMAIL: "ada@example.org",
};

export class GitHost {
  private readonly folder = mkdtempSync(join(tmpdir(), "millrace-git-"));
  private readonly repository = join(this.folder, "analysis");
  private readonly server = createServer((request, response) => {
    const { pathname, search } = new URL(request.url ?? "", "http://host");
    const backend = spawn("git", ["http-backend"], {
      env: {
        ...env,
        GIT_PROJECT_ROOT: this.folder,
        GIT_HTTP_EXPORT_ALL: "1",
        PATH_INFO: pathname,
        QUERY_STRING: search.slice(1),
        REQUEST_METHOD: request.method ?? "",
        CONTENT_TYPE: request.headers["content-type"] ?? "",
        GIT_PROTOCOL: String(request.headers["git-protocol"] ?? ""),
      },
    });
    request.pipe(backend.stdin);
    backend.stdin.on("error", () => undefined);
    const parts: Buffer[] = [];
    backend.stdout.on("data", (part: Buffer) => parts.push(part));
    backend.on("close", () => {
      const all = Buffer.concat(parts);
      const end = all.indexOf("\r\n\r\n");
      for (const line of all.subarray(0, end).toString().split("\r\n")) {
        const [name = "", value = ""] = line.split(": ");
        if (name === "Status") response.statusCode = Number.parseInt(value, 10);
        else response.setHeader(name, value);
      }
      response.end(all.subarray(end + 4));
    });
  });
  url = "";

  static async open(): Promise<GitHost> {
    const host = new GitHost();
    mkdirSync(host.repository);
    host.git("init", "-q", "-b", "main");
    host.git("config", "uploadpack.allowAnySHA1InWant", "true");
    host.git("config", "uploadpack.allowFilter", "true");
    await new Promise<void>((resolve) => host.server.listen(0, "127.0.0.1", resolve));
    host.url = `http://127.0.0.1:${(host.server.address() as AddressInfo).port}/analysis`;
    return host;
  }

  /** commit writes files and commits them. */
  commit(files: Record<string, string>): string {
    for (const [name, text] of Object.entries(files)) {
      mkdirSync(dirname(join(this.repository, name)), { recursive: true });
      writeFileSync(join(this.repository, name), text);
    }
    this.git("add", "-A");
    this.git("commit", "-q", "-m", "change");
    return this.git("rev-parse", "HEAD");
  }

  private git(...args: string[]): string {
    return execFileSync("git", args, { cwd: this.repository, env, encoding: "utf8" }).trim();
  }

  close(): void {
    this.server.closeAllConnections();
    this.server.close();
    rmSync(this.folder, { recursive: true, force: true });
  }
}
