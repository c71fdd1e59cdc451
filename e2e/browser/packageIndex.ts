// An index of Python packages on this machine, which answers when it is told to.
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

const file = "greeter-1.0-py3-none-any.whl";
const wheel = `import sys, zipfile
with zipfile.ZipFile(sys.argv[1], "w") as z:
    z.writestr("greeter.py", "print('hello')\\n")
    z.writestr("greeter-1.0.dist-info/METADATA", "Metadata-Version: 2.1\\nName: greeter\\nVersion: 1.0\\n")
    z.writestr("greeter-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\\nGenerator: test\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
    z.writestr("greeter-1.0.dist-info/RECORD", "greeter.py,,\\ngreeter-1.0.dist-info/METADATA,,\\ngreeter-1.0.dist-info/WHEEL,,\\ngreeter-1.0.dist-info/RECORD,,\\n")
`;

export class PackageIndex {
  private readonly content: Buffer;
  private open = () => {};
  private readonly opened = new Promise<void>((resolve) => {
    this.open = resolve;
  });
  private readonly server = createServer(async (request, response) => {
    await this.opened;
    if (request.url === "/simple/greeter/") {
      const sha256 = createHash("sha256").update(this.content).digest("hex");
      response.setHeader("Content-Type", "application/vnd.pypi.simple.v1+json");
      response.end(
        JSON.stringify({
          meta: { "api-version": "1.0" },
          name: "greeter",
          files: [{ filename: file, url: `/files/${file}`, hashes: { sha256 } }],
        }),
      );
    } else if (request.url === `/files/${file}`) response.end(this.content);
    else response.writeHead(404).end();
  });

  private constructor() {
    const folder = mkdtempSync(join(tmpdir(), "millrace-index-"));
    execFileSync("python3", ["-c", wheel, join(folder, file)]);
    this.content = readFileSync(join(folder, file));
    rmSync(folder, { recursive: true });
  }

  /** start is an index with one package, greeter; it answers nobody until it is let go. */
  static async start(): Promise<PackageIndex> {
    const index = new PackageIndex();
    await new Promise<void>((resolve) => index.server.listen(0, "127.0.0.1", resolve));
    return index;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}/simple/`;
  }

  letGo(): void {
    this.open();
  }

  close(): void {
    this.open();
    this.server.close();
    this.server.closeAllConnections();
  }
}
