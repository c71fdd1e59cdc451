// The network between one browser and its server, which can be lost without a word.
import { connect, createServer, type Server, type Socket } from "node:net";

/** Network relays a browser's connections, as an HTTP proxy, until it is lost. */
export class Network {
  private lost = false;
  private readonly sockets = new Set<Socket>();

  private constructor(
    private readonly relay: Server,
    private readonly server: URL,
  ) {
    relay.on("connection", (browser) => this.join(browser));
  }

  /** open makes a network that leads to one server, whatever the browser asks for. */
  static async open(server: string): Promise<Network> {
    const relay = createServer();
    const network = new Network(relay, new URL(server));
    await new Promise<void>((resolve) => relay.listen(0, "127.0.0.1", resolve));
    return network;
  }

  /** proxy is what a browser takes for its proxy. */
  get proxy(): string {
    const address = this.relay.address();
    if (address === null || typeof address === "string") throw new Error("the network is closed");
    return `http://127.0.0.1:${address.port}`;
  }

  /** lose drops everything from now on. Nobody is told: connections stay open, and new ones get no answer. */
  lose(): void {
    this.lost = true;
  }

  /** find lets connections through again. Those from before are broken. */
  find(): void {
    this.lost = false;
    for (const socket of this.sockets) socket.destroy();
  }

  async close(): Promise<void> {
    const closed = new Promise((resolve) => this.relay.close(resolve));
    for (const socket of this.sockets) socket.destroy();
    await closed;
  }

  private join(browser: Socket): void {
    const server = connect(Number(this.server.port), this.server.hostname);
    browser.on("data", (bytes) => {
      if (this.lost) return;
      // A WebSocket comes through a tunnel. Other requests name the whole address, which servers accept.
      if (bytes.toString("latin1").startsWith("CONNECT ")) browser.write("HTTP/1.1 200 Connected\r\n\r\n");
      else server.write(bytes);
    });
    server.on("data", (bytes) => {
      if (!this.lost) browser.write(bytes);
    });
    this.endTogether(browser, server);
    this.endTogether(server, browser);
  }

  /** endTogether closes one end when the other closes, unless nobody can be told. */
  private endTogether(one: Socket, other: Socket): void {
    this.sockets.add(one);
    one.on("error", () => one.destroy());
    one.on("close", () => {
      this.sockets.delete(one);
      if (!this.lost) other.destroy();
    });
  }
}
